"""Every form of parameters against every form of arguments, with the errors."""
def f0(): return ()
def f1(a): return (a,)
def f2(a, b=2): return a, b
def f3(a, b=2, c=3): return a, b, c
def pos(a, b, /, c, d=4): return a, b, c, d
def kwo(a, *, b, c=3): return a, b, c
def var(a, *args): return a, args
def kws(a, **kw): return a, kw
def full(a, b=2, /, c=3, *args, d, e=5, **kw): return a, b, c, args, d, e, kw
def closure(n):
    def inner(x, *, k=n): return x, k, n
    return inner
class C:
    def m(self, a, b=2): return a, b
    def __call__(self, a, *b, k=None): return "call", a, b, k
    @classmethod
    def c(cls, a): return cls.__name__, a
    @staticmethod
    def s(a, b=1): return a, b
class I:
    def __init__(self, a, b=2, *c, d=4, **e): self.v = a, b, c, d, e
class NoInit: pass
class New:
    def __new__(cls, *a): return super().__new__(cls)
    def __init__(self, *a): self.v = a
class BadInit:
    def __init__(self): return 1
c = C()
fns = [f0, f1, f2, f3, pos, kwo, var, kws, full, closure(7), c.m, c, C.c, C.s, C.m, lambda *a, **k: (a, k), I, NoInit, New, BadInit, len, int, print]
argss = [((), {}), ((1,), {}), ((1, 2), {}), ((1, 2, 3), {}), ((1, 2, 3, 4), {}), ((1,), {"b": 9}), ((1,), {"a": 9}), ((), {"a": 1}), ((1, 2, 3), {"d": 8}), ((1, 2), {"zz": 1}), ((1,), {"k": 2}), ((1, 2, 3, 4, 5, 6), {"d": 0, "z": 1}), ((1, 2), {"c": 3}), ((), {"b": 1, "c": 2}), ((c, 5), {})]
def show(f, g):
    try: r = g()
    except TypeError as e: r = "TypeError " + str(e)
    if hasattr(r, "v"): r = type(r).__name__, r.v
    return r if not isinstance(r, (C, NoInit)) else type(r).__name__
for f in fns:
    if f is print: continue
    print(getattr(f, "__name__", f.__class__.__name__))
    for a, k in argss:
        print("  ", a if c not in a else "c", k, show(f, lambda: f(*a, **k)))
# the same through CALL with literal shapes
def lit():
    return [f1(1), f2(1), f2(1, 3), f2(1, b=3), f2(b=1, a=0), f3(1, c=5), pos(1, 2, 3), pos(1, 2, c=3), pos(1, 2, d=1, c=2), kwo(1, b=2), kwo(b=1, a=0, c=2), var(1, 2, 3), kws(1, x=2), full(1, d=2), full(1, 2, 3, 4, d=5, z=6), c.m(1), c.m(1, b=3), c(1, 2, k=3), C.c(1), C.s(1), I(1).v, I(1, d=2, q=3).v, New(1, 2).v]
for i in range(6): r = lit()
print(r)
for bad in ("f1()", "f1(1, 2)", "f2(1, c=1)", "f2(1, a=2)", "pos(1, b=2, c=3)", "kwo(1)", "kwo(1, 2, b=3)", "c.m()", "c()", "I()", "NoInit(1)", "BadInit()", "full(1)", "f1(**{'a': 1, 'b': 2})", "C.m()", "f3()"):
    for i in range(3):
        try: print(eval(bad))
        except TypeError as e:
            if i == 2: print(bad, e)

"""Wrappers with *args and **kwargs, many keywords, mappings as **, order of evaluation."""
import functools
def wrap(f):
    @functools.wraps(f)
    def w(*args, **kwargs): return f(*args, **kwargs)
    return w
@wrap
@wrap
@wrap
def target(a, b=2, *rest, c, d=4, **more): return a, b, rest, c, d, more
for i in range(5): r = [target(1, c=3), target(1, 2, 3, c=4, z=5), target(*(1, 2), **{"c": 1, "q": 2})]
print(r)
for bad in (lambda: target(), lambda: target(1), lambda: target(1, a=1, c=2), lambda: target(c=1)):
    try: bad()
    except TypeError as e: print(e)
class Map:
    def keys(self): return ["c", "k"]
    def __getitem__(self, k): return k * 2
print(target(1, **Map()))
class BadMap:
    def keys(self): raise RuntimeError("keys")
try: target(**BadMap())
except RuntimeError as e: print(e)
log = []
def ev(x): log.append(x); return x
target(ev(1), *[ev(2)], ev(3), c=ev(4), **{"e": ev(5)}); print(log)
def many(**k): return sum(k.values()), list(k)[:3]
print(many(**{f"k{i}": i for i in range(100)}))
def pos(*a): return len(a), a is t
t = tuple(range(60)); print(pos(*t))
class C:
    def __init__(self, *a, **k): self.a, self.k = a, k
    @wrap
    def m(self, x, *, y=1): return x, y
    @classmethod
    @wrap
    def c(cls, x): return cls.__name__, x
for i in range(4): r = C(*[1, 2], **{"z": 3}), C(1).m(5), C().m(*[6], **{"y": 7}), C.c(8), C().c(*[9])
print(r[0].a, r[0].k, r[1:])
class S(str): pass
def f(a=1, **k): return a, k
print(f(**{S("a"): 5}), f(**{S("b"): 6}))
try: f(**{1: 2})
except TypeError as e: print(e)
p = functools.partial(target, 1, c=2); print(p(), p(5, d=6), functools.partial(p, z=1)())
def default_mut(a, b=[]): b.append(a); return b
print(default_mut(1), default_mut(2), default_mut(*(3,)))

"""Call sites whose callee changes; functions whose code, defaults or closure change."""
def a(x): return ("a", x)
def b(x, y=5): return ("b", x, y)
class K:
    def __init__(self, x): self.x = x
    def __repr__(self): return "K(%r)" % self.x
class O:
    def __call__(self, x): return ("O", x)
import functools, operator
def site(f, x): return f(x)
callees = [a, b, K, O(), str, len, abs, lambda x: -x, functools.partial(b, 1), operator.itemgetter(0), "abc".find, [].append, type, isinstance]
for rep in range(3):
    for f in callees:
        for i in range(3):
            try: r = site(f, "s") if f is not abs else site(f, -3)
            except Exception as e: r = (type(e).__name__, str(e))
        if rep == 2: print(r)
def g(x, y=1): return x, y
def call(): return g(1)
for i in range(12):
    if i == 3: g.__defaults__ = (2,)
    if i == 5: g.__code__ = b.__code__
    if i == 7: g.__defaults__ = None
    if i == 9: g.__code__ = a.__code__
    try: print(call())
    except TypeError as e: print(e)
def h(*, k=1): return k
print(h()); h.__kwdefaults__ = {"k": 7}; print(h()); h.__kwdefaults__ = None
try: h()
except TypeError as e: print(e)
class P:
    def m(self): return "m"
p = P(); bound = p.m
def cb(): return bound(), p.m()
for i in range(5): r = cb()
P.m = lambda self: "new m"; print(r, cb())
P.__call__ = lambda self, *z: ("late call", z)
print(p(1)); del P.__call__
try: p(1)
except TypeError as e: print(e)
K.__init__ = lambda self, x: setattr(self, "x", "patched"); print(site(K, 1))
K.__new__ = lambda cls, x: "not a K"; print(site(K, 1)); del K.__new__
try: print(site(K, 1))
except TypeError as e: print(e)

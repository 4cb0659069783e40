"""Reference counts: nothing is kept alive or dropped too early; cycles; weak references."""
import gc, weakref, sys
class O:
    n = 0
    def __init__(self, v=None): O.n += 1; self.v = v
    def __del__(self): O.n -= 1
    @property
    def p(self): return self.v
    def __getattr__(self, k): return O()
    def __call__(self, *a, **k): return a
    def __add__(self, o): return O()
    def __eq__(self, o): return True
    __hash__ = None
    def __getitem__(self, k): return O()
    def __setitem__(self, k, v): pass
    def __enter__(self): return O()
    def __exit__(self, *a): return True
    def __iter__(self): return iter([O(), O()])
    def __contains__(self, k): return True
    def __bool__(self): return True
    def __setattr__(self, k, v): object.__setattr__(self, k, v)
def gen():
    for i in range(3): yield O()
def kw(a, *b, c=None, **d): return O()
def use():
    o = O(O()); o.p; o.zz; o(O(), k=O()); o + O(); o == O(); o[O()]; o[O()] = O(); O() in o
    with o as e: raise ValueError(O())
    for x in o: pass
    for x in gen(): pass
    for x in gen(): break
    [O() for _ in range(3)]; list(gen()); (O() for _ in range(2)); kw(O(), O(), c=O(), z=O()); kw(*[O()], **{"q": O()})
    if o: pass
    not o; o and O(); a, b = O(), O(); a, *b = O(), O(), O()
    try: kw()
    except TypeError: pass
    try: O(1, 2, 3)
    except TypeError: pass
    try: raise KeyError(O())
    except KeyError as e: pass
    def inner(): return o
    inner(); f"{O() == 1}"; {1: O()}; {"a": O(), **{"b": O()}}; o.attr = O(); del o.attr
    return None
for i in range(40): use()
gc.collect(); print(O.n)
r = sys.getrefcount(None); 
def refs():
    x = object(); y = x
    return sys.getrefcount(x)
print(refs(), refs())
class N: pass
def cycle():
    a = N(); a.self = a; return weakref.ref(a)
w = cycle(); print(w() is not None); gc.collect(); print(w() is None)
def gcycle():
    def g():
        me = yield
        while True: yield me
    x = g(); next(x); x.send(x); return weakref.ref(x)
w = gcycle(); gc.collect(); print(w() is None)
def frames():
    n = N()
    try: raise ValueError
    except ValueError as e: tb = e.__traceback__; n.tb = tb
    return weakref.ref(n)
w = frames(); gc.collect(); print(w() is None)
class Res:
    def __del__(self): saved.append(self)
saved = []
def res(): Res()
res(); print(len(saved)); saved.clear()
gen_alive = gen(); next(gen_alive); del gen_alive; print(O.n)

"""Errors that cannot propagate: __del__, weakref callbacks, threads, generators dropped."""
import sys, weakref, gc
sys.unraisablehook = lambda a: print("unraisable", a.exc_type.__name__, a.exc_value, getattr(a.object, "__qualname__", type(a.object).__name__))
class D:
    def __del__(self): raise ValueError("in del")
D()
class O: pass
o = O(); w = weakref.ref(o, lambda r: 1 / 0); del o
def g():
    try: yield 1
    finally: raise KeyError("in close")
x = g(); next(x); del x
def h():
    while True:
        try: yield 1
        except GeneratorExit: yield 2
y = h(); next(y); del y; gc.collect()
class C:
    def __eq__(self, other): raise ZeroDivisionError("eq")
    def __hash__(self): return 1
try: {C(): 1}[C()]
except ZeroDivisionError as e: print(e)
try: C() in [C()]
except ZeroDivisionError as e: print(e)
print(sorted([3, 1, 2], key=lambda v: -v))
try: sorted([3, 1], key=lambda v: 1 / 0)
except ZeroDivisionError as e: print("key", e)
print(int.__hash__(1), "end")
raise RuntimeError("last words")

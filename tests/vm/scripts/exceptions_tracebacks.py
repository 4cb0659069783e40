"""Tracebacks: lines and names through every way of entering a frame; uncaught at the end."""
import traceback
class A:
    def __init__(self, x=0):
        if x: raise ValueError("init")
    def __getattr__(self, n):
        raise LookupError(n)
    @property
    def p(self):
        return self.q()
    def q(self):
        raise KeyError(
            "q")
    def __call__(self, x):
        return x / 0
    def __add__(self, o):
        return self[
            o]
    def __getitem__(self, k):
        raise IndexError(k)
    def __enter__(self): raise OSError("enter")
    def __exit__(self, *a): pass
    def __bool__(self): raise TypeError("bool")
    def __iter__(self):
        yield 1
        raise RuntimeError("iter")
    def __setattr__(self, n, v):
        raise AttributeError("set " + n)
    def __contains__(self, k): return 1 // 0
def w():
    with A(): pass
def b():
    if A(): pass
def it():
    for x in A():
        pass
def s(): A().x = 1
def nested():
    def inner(*a, **k):
        return A()(*a)
    return inner(1)
def comp(): return [1 / x for x in (1, 0)]
def gen(): return sum(1 / x for x in (1, 0))
def multi(): return (1 +
    A() +
    2)
def lam(): return (lambda: A().p)()
def k(): return max([1], key=lambda v: v / 0)
def wrong(): return A(1, 2, 3)
for f in (lambda: A(1), lambda: A().zz, lambda: A().p, lambda: A()(1), lambda: A() + 5, lambda: 1 in A(), w, b, it, s, nested, comp, gen, multi, lam, k, wrong):
    for i in range(3):
        try: f()
        except Exception as e: tb = traceback.format_exc()
    print(tb.replace(__file__, "FILE"))
def last(n):
    if n == 0:
        raise SystemError("uncaught")
    last(n - 1)
try:
    {}["missing"]
except KeyError:
    last(3)

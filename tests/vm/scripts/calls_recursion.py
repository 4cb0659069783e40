"""Deep recursion, RecursionError through each way of entering a frame, recovery."""
import sys
def fib(n): return n if n < 2 else fib(n - 1) + fib(n - 2)
print(fib(15))
def deep(n): return 0 if n == 0 else 1 + deep(n - 1)
print(deep(900))
def forever(n): return forever(n + 1)
class Attr:
    def __getattr__(self, n): return getattr(self, n + "x")
class Prop:
    @property
    def p(self): return self.p
class Call:
    def __call__(self): return self()
class Init:
    def __init__(self): Init()
class Add:
    def __add__(self, o): return self + o
class Item:
    def __getitem__(self, k): return self[k]
class Bool:
    def __bool__(self): return not self
class It:
    def __iter__(self): return iter(self)
def gen(): yield from gen()
for f in (lambda: forever(0), lambda: Prop().p, lambda: Call()(), lambda: Init(), lambda: Add() + 1, lambda: Item()[1], lambda: not Bool(), lambda: list(It()), lambda: list(gen())):
    try: f()
    except RecursionError as e: print("RecursionError", "maximum recursion depth exceeded" in str(e))
print(deep(500))
sys.setrecursionlimit(5000); print(deep(4500)); sys.setrecursionlimit(1000)
def big(a0, a1, a2, a3, a4, a5, a6, a7, a8, a9, n): return 0 if n == 0 else 1 + big(a0, a1, a2, a3, a4, a5, a6, a7, a8, a9, n - 1)
print(big(*range(10), 800))
for rep in range(30): deep(300)

"""Functions: defaults, annotations, closures over loops, decorators, recursion through cells, attributes."""
fs = [lambda: i for i in range(3)]; print([f() for f in fs]); fs = [lambda i=i: i for i in range(3)]; print([f() for f in fs])
def ann(a: int, b: "str" = "x", *c: float, d: list = None, **e: dict) -> bool: pass
print(ann.__annotations__, ann.__defaults__, ann.__kwdefaults__, ann.__name__, ann.__qualname__)
def deco(n):
    def wrap(f):
        import functools
        @functools.wraps(f)
        def inner(*a, **k): return n, f(*a, **k)
        return inner
    return wrap
@deco(1)
@deco(2)
def add(a, b=3): "doc"; return a + b
for i in range(4): r = add(1), add(1, b=5), add(*[1, 2])
print(r, add.__doc__, add.__wrapped__.__name__)
def counter():
    c = 0
    def inc(by=1):
        nonlocal c
        c += by
        return c
    return inc
a, b = counter(), counter()
for i in range(10): a(); b(2)
print(a(), b())
def even(n): return True if n == 0 else odd(n - 1)
def odd(n): return False if n == 0 else even(n - 1)
print(even(100), odd(7))
def args_cell(a, b):
    def g(): return a, b
    a = a + 1
    return g
print(args_cell(1, 2)())
def f(x=[]): x.append(1); return x
print(f(), f(), f.__closure__, args_cell(1, 2).__closure__[0].cell_contents)
compose = lambda *fs: (lambda x: __import__("functools").reduce(lambda v, f: f(v), fs, x)); print(compose(lambda x: x + 1, str, len)(99))
def y(f): return (lambda x: x(x))(lambda x: f(lambda *a: x(x)(*a)))
print(y(lambda s: lambda n: 1 if n == 0 else n * s(n - 1))(10))
import functools
@functools.lru_cache(None)
def fibm(n): return n if n < 2 else fibm(n - 1) + fibm(n - 2)
print(fibm(80), functools.reduce(lambda a, b: a * b, range(1, 10)), list(map(lambda a, b: a + b, [1], [2])), sorted("bca", key=lambda c: -ord(c)))
p = functools.partial(add, 10); print(p(), p(b=1)); print((lambda *, k: k)(k=3), (lambda a, /, b: (a, b))(1, b=2))
if (n := 10) > 5: print(n)
print([m := 1, m ** 2], [(y := x) for x in range(3)], y)
def walrus(): return [last := v for v in range(4)], last
print(walrus())

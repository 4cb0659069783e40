"""PEP 695 and PEP 709: type parameters, aliases, comprehensions in place (3.12 and later; nothing to see before)."""
import sys
if sys.version_info >= (3, 12):
    exec('''
def first[T](items: list[T]) -> T: return items[0]
class Box[T: (int, str), *Ts, **P]:
    x: T
    def m[U: int](self, u: U) -> T: return u
type Pair[A] = tuple[A, A]
print(first([3]), first.__type_params__, Box.__type_params__, Box.m.__type_params__, Pair, Pair.__value__)
print(Box.__type_params__[0].__constraints__, Box.m.__type_params__[0].__bound__, Box.__orig_bases__, Box.__parameters__)
class Outer:
    y = 5
    class Inner[T]:
        z = y
        def get(self): return __class__.__name__, T
print(Outer.Inner.z, Outer.Inner().get())
''')
def shadow():
    x = "outer"
    inner = [x for x in range(3)]
    return x, inner, [[x + y for x in "ab"] for y in "cd"]
print(shadow())
def unbound():
    try: print([later for _ in range(1)], later)
    except UnboundLocalError as e: print(e)
    later = 1
unbound()
def raising():
    x = 1
    try: return [1 // x for x in (1, 0)]
    except ZeroDivisionError: return "x is still", x
print(raising())
class Body:
    items = [1, 2]
    doubled = [i * 2 for i in items]
    both = {k: v for k, v in zip(items, doubled)}
print(Body.doubled, Body.both)
print([lambda: i for i in range(2)][0](), (lambda: [j for j in range(2)])())
def frames():
    import sys
    return sorted(k for k in sys._getframe().f_locals), [sorted(sys._getframe().f_locals) != [] for q in range(1)]
print(frames()[0])

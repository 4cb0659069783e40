"""Unpacking of all kinds of sequences, star targets and their errors."""
def two(s): a, b = s; return a, b
def three(s): a, b, c = s; return a, b, c
def star(s): a, *b, c = s; return a, b, c
class I:
    def __iter__(self): yield 1; yield 2
class E:
    def __iter__(self): raise ValueError("iter")
for f in (two, three, star):
    for s in [(1, 2), [1, 2], "ab", (1, 2, 3), [1, 2, 3], {1: 0, 2: 0}, I(), 5, None, (1,), range(3), E(), iter([1, 2, 3, 4])] * 2:
        try: print(f(s), end="; ")
        except Exception as e: print(type(e).__name__, e, end="; ")
    print()
a, b = b, a = 1, 2; print(a, b)
(x, y), z = [(1, 2), 3]; print(x, y, z)
*a, = "abc"; print(a)
print([*range(3), *"ab"], (*(), 1), {*[1], 2}, {**{"a": 1}, "b": 2, **{"a": 3}})
def f(*a, **k): return a, k
print(f(*[1], *(2, 3), x=1, **{"y": 2}, **{}))
for bad in ("f(*5)", "f(**5)", "f(**{'a': 1}, **{'a': 2})", "f(**{1: 2})", "[*5]", "{**5}", "f(a=1, **{'a': 2})", "{*5}", "(*5,)"):
    try: print(eval(bad))
    except TypeError as e: print(bad, e)

"""Conditional expressions, boolean operators, walrus and comprehension conditions nested in each other."""
def f(a, b, c):
    x = a if b else c if a else b
    y = a and b or c and not a
    z = [i if i % 2 else -i for i in range(5) if (j := i * a) is not None and (i > 1 or b)]
    w = (a or b) and (b or c), not (a and not b), a == b != c, a < b if b is not None else None
    return x, y, z, w
import itertools
for r in range(3):
    for t in itertools.product((0, 1, 2), repeat=3): out = f(*t)
    print(out)
print([f(*t) for t in itertools.product((0, 1), repeat=3)])
def g(v):
    if v is None or not v or v == 3 and v > 2: return "a"
    elif v in (4, 5) or (v < 0 and not v == -2): return "b"
    while v and v > 6 or v == 1:
        v -= 2
        if v == 7 or v is None: break
    else: return "else", v
    return "break", v
print([g(v) for v in (None, 0, 3, 4, -1, -2, 1, 2, 7, 8, 9, 12, 15)])
print(any(x > 3 for x in (1, 2, 5)) and all((x := y) for y in (1, 1)), x if (x := 3) else 0, "" or [] or None or "last", 1 and "two" and 3)

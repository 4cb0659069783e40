# Arithmetic in hot loops whose operands change kind and size in the middle of an expression.


def mixed(a, b, c):
    return (a + b) * c - a * (b - c) + (a - b) * (c + a)


def bits(a, b):
    return ((a & 0xFF) | (b ^ a)) + (a >> 3) - (b << 2) + a % 7 + b // 3


def compare(a, b):
    r = 0
    if a < b: r += 1
    if a <= b: r += 2
    if a == b: r += 4
    if a != b: r += 8
    if a > b: r += 16
    if a >= b: r += 32
    return r, a < b, a == b, a is b, not a < b


class Int(int):
    def __add__(self, other): return Int(int(self) + int(other) + 1000)


class Odd:
    def __init__(self, v): self.v = v
    def __add__(self, o): return ("add", self.v, o)
    def __radd__(self, o): return ("radd", self.v, o)
    def __sub__(self, o): return 5
    def __rsub__(self, o): return 6
    def __mul__(self, o): return 7
    def __rmul__(self, o): return 8


nan, inf = float("nan"), float("inf")
values = [1, 2, -3, 0, 256, 257, -5, -6, 2 ** 29, 2 ** 30 - 1, 2 ** 30, -2 ** 30, 2 ** 31, 2 ** 59, 2 ** 60, 2 ** 62, 2 ** 63 - 1, -2 ** 63, 2 ** 64,
          1.5, -0.0, 0.0, nan, inf, -inf, 1e308, True, False, Int(3), Odd(2)]
for first in (1, 1.5):
    for a in values:
        for b in values[::3]:
            for f, more in ((mixed, (first,)), (bits, ()), (compare, ())):
                try:
                    r = f(a, b, *more)
                except (TypeError, ValueError, ZeroDivisionError, OverflowError, MemoryError) as e:
                    r = type(e).__name__ + str(e)[:40]
                if f is not bits or not isinstance(b, int) or b.bit_length() < 40:
                    print(f.__name__, a if not isinstance(a, Odd) else "Odd", b, r if "Odd" not in repr(r) else "odd")


def grow(n, start, factor):
    x = start
    for i in range(n):
        x = x * factor + i
        if x > 10 ** 40:
            x -= 10 ** 40
    return x


print(grow(50, 1, 1), grow(60, 1, 3), grow(60, 1.5, 1.25), grow(90, -7, 5))


def aliased(n):
    a = b = 1000.5
    kept = []
    i = j = 70000
    numbers = []
    for k in range(n):
        a = a + 1.0
        if k % 7 == 0:
            kept.append(a)
            b = a
            numbers.append(i)
            j = i
        i = i + 1
        a = a * 1.0
    return kept, b, a, numbers, i, j


print(aliased(60))


def one_object(n):
    wrong = 0
    for i in range(1000, 1000 + n):
        a = b = i * 3
        c = (d := i * 0.5) + 1.0
        e = f = c * d
        wrong += a is not b
        wrong += e is not f
    return wrong, a, b, c, d, e, f


print(one_object(50))


def small(n):
    s = 0
    for i in range(-20, n):
        s = i + 1
        t = s - 1
        if t is not i and -5 <= i <= 256:
            print("not the one", i)
    return s


print(small(300))


def unbound(n, k):
    for i in range(n):
        if i == k:
            del i
        x = i
    return x


for k in (100, 30):
    try:
        print(unbound(60, k))
    except UnboundLocalError as e:
        print(e)


def nested(n):
    total = 0
    for i in range(n):
        for j in range(i):
            if j == 7:
                continue
            if j > 11:
                break
            total += (i - j) * (i + j)
        else:
            total += 1
    while total > 100:
        total //= 3
        total -= 1
    return total


print(nested(40))


def deep(a, b, c, d, e, f):
    return (a + (b + (c + (d + (e + (f + (a * b + (c * d + (e * f)))))))))


for i in range(30):
    r = deep(i, i + 1, i + 2, i + 3, i + 4, i + 5)
print(r, deep(1.5, 2.5, 3.5, 4.5, 5.5, 6.5), deep(1, 2.5, 3, 4.5, 5, 6.5))


class Keeps:
    def __init__(self): self.seen = []
    def __getitem__(self, key):
        self.seen.append(key)
        return 1
    def __setitem__(self, key, value): self.seen.append(key)


def adds(container, n):
    for i in range(n):
        container[(i + 700) % 1000] += 1


adds([1] * 1000, 20)
keeps = Keeps()
adds(keeps, 20)
print([a is b for a, b in zip(keeps.seen[::2], keeps.seen[1::2])])


class Compares:
    def __init__(self): self.seen = []
    def __gt__(self, other):
        self.seen.append(other)
        return True
    __lt__ = __gt__


def between(low, high, n):
    r = 0
    for i in range(n):
        if low < i * 1.5 < high: r += 1
    return r


compares = Compares()
print(between(0.5, 1000.5, 20), between(compares, compares, 20), [a is b for a, b in zip(compares.seen[::2], compares.seen[1::2])])

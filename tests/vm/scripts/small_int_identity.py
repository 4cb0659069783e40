"""Small ints stay one object; larger ones keep their values through in-place tricks."""
def check(lo, hi):
    bad = 0
    for i in range(lo, hi):
        a = i + 1 - 1
        b = (i * 2) // 2
        c = i & 0xffff if i >= 0 else i
        d = -(-i)
        if not (a is i and d is i): bad += 1
        if not b is i: bad += 1
        if not c is i: bad += 1
    return bad
for r in range(3): print(check(-5, 257))
def alias():
    a = 1000; b = a; a += 1; c = a; a -= 1
    return a, b, c
for i in range(5): r = alias()
print(r)
x = 2**30 - 1
for i in range(5): x += 1
print(x, x - 2**30, [x * k for k in (1, -1, 2**30, 2**31)], -x // 7, x % -5, (-x) % 5)
big = [2**59 + i for i in range(4)]
def s(l):
    t = 0
    for v in l: t += v
    return t
for i in range(5): r = s(big)
print(r, s([2**61] * 3), s([-2**60] * 3), s([2**63 - 1, 1]))


def remainders(numbers, divisors):
    return [[n % d is n for d in divisors] for n in numbers]


numbers = [0, 5, 300, 10**6, (1 << 30) - 1, 1 << 30, (1 << 31) + 5, (1 << 60) - 1, 1 << 61, -300, 1 << 80]
divisors = [7, 256, 301, 10**6 + 1, (1 << 30) - 1, 1 << 30, 1 << 31, (1 << 31) + 9, (1 << 60) - 1, 1 << 62, 1 << 90, -(1 << 31)]
for _ in range(30):
    table = remainders(numbers, divisors)
for number, row in zip(numbers, table):
    print(number, row)

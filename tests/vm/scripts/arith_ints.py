"""Integer operators over sizes around the small-int and one-digit limits."""
values = [0, 1, -1, 4, -5, -6, 255, 256, 257, 2**15, 2**29, 2**30 - 1, 2**30, -2**30, 2**31, 2**59, 2**60 - 1, 2**60, -2**60, 2**62, 2**63, 10**25]
def ops(a, b):
    out = [a + b, a - b, a * b, a & b, a | b, a ^ b, a == b, a != b, a < b, a <= b, a > b, a >= b]
    if b:
        out += [a // b, a % b, divmod(a, b), a / b]
    return out
total = 0
for a in values:
    for b in values:
        total = hash((total, tuple(ops(a, b))))
        x = a
        x += b; x -= 1; x *= 3; x |= 5; x &= ~2; x ^= b
        if b: x //= b; x %= 7 if b > 0 else -7
        total = hash((total, x, -a, ~a, +a))
print(total)
def loop(n):
    s = 0
    for i in range(n):
        s += i * i - 3
    return s
print(loop(10), loop(100000), loop(3))
small = [i + 1 for i in range(-10, 300)]
print(all(small[i] is (i - 9) for i in range(0, 260)) or "identity differs", [x is y for x, y in zip([a - 1 for a in (257, 1, -4)], (256, 0, -5))])

"""Two paths of an expression bring values of two types."""
def f(count, y):
    total, r, kinds = 0.0, 1, []
    for i in range(count):
        total += (0.5 if r else i) / y
        total += 1.5 * (i if r else 2.5)
        kinds.append(len([1, 2] if r else "abc"))
        r = i % 3
    return total, kinds
for k in range(4): r = f(300, 0.1)
print(r)
def g(r, i, y): return (0.5 if r else i) / y, (i if r else 0.5) * y, (3 if r else y) + 4
for k in range(50): r = g(1, k, 0.5)
for k in range(50): print(g(0, k, 0.1), g(k % 2, 2**40 + k, 0.25), g(k % 2, k * 0.5, k + 1))

"""A quotient of ints is rounded once, also where an int has more bits than a float."""
def f(a, b): return a / b
for k in range(1, 40): r = f(k, 7)
print(r)
for a in (2**53 - 1, 2**53, 2**53 + 1, 2**53 + 2, 2**54 + 3, -2**53 - 1, 2**62 + 1):
    for b in (1, 3, 7, 10, 2**53 + 1): print(f(a, b), f(b, a))

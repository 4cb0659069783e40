"""Float operators, also where an operand dies and is reused."""
import math
def f(a, b): return a + b - a * b, a / b if b else None, abs(a) ** 0.5, a // 1.5, a % 0.7, -a, +a
for a in (0.0, -0.0, 1.5, -2.25, 1e300, float("inf"), float("nan")):
    for b in (0.0, 3.5, -1e-300, float("-inf")):
        print(f(a, b))
x = 1.0
y = x
for i in range(50):
    x = x * 1.1 + 0.5 - x / 3.0
print(x, y)
def keep(a):
    b = a + 1.0
    c = b
    d = b * 2.0 + b
    return a, b, c, d
for i in range(5): print(keep(float(i)))
print(sum([0.1] * 10), math.fsum([0.1] * 10))
def mixed(a, b): return a + b, a * b, a - b
for args in [(1, 2), (1.0, 2), (1, 2.0), (1.0, 2.0), (True, 2), ("a", "b")] * 4:
    try: print(mixed(*args))
    except TypeError as e: print(e)
try: 1.0 / 0.0
except ZeroDivisionError as e: print(e)
try: 1 // 0
except ZeroDivisionError as e: print(e)

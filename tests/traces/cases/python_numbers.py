# Integers that outgrow 64 bits, division, rounding and strings in a loop with tensors.
import torch

n, f, s, bits = 1, 0.0, "", 0
x = torch.zeros(3)
for i in range(80):
    n = n * 3 + i
    f += (n % 1000) / 7
    bits = (bits << 1 | i & 1) & 0xFFFF
    if n % 5 == 0:
        s += str(i % 10)
    x = x * 0.5 + (n % 11) + round(f % 1, 2) - i // 3 + -i % 4 + divmod(i, 7)[1]
print(n, f"{f:.6f}", s, bits, [f"{v:.6f}" for v in x.tolist()])
try:
    for i in range(30, -1, -1):
        x = x + 1 / i
except ZeroDivisionError as error:
    print(error, i, [f"{v:.6f}" for v in x.tolist()])

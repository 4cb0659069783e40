# Python decides by sizes: branches, padding to a multiple, chunks; sizes 0 and 1 among them, which broadcast.
# expect: traces>=1
import math

import torch

torch.manual_seed(2)
weight = torch.randn(8, 8)
bias = torch.randn(6, 8)


def work(x):
    n = len(x)
    if n % 4:
        x = torch.cat([x, x.new_zeros(4 - n % 4, 8)])
    padded = x.size(0)
    blocks = x.view(padded // 4, 4, 8) @ weight
    kind = "short" if n < 10 else "long" if n < 25 else "huge"
    if kind == "huge":
        blocks = blocks * 0.5
    scale = 1 / math.sqrt(max(n, 1))
    y = blocks.reshape(-1, 8)[:n] * scale
    if n == 1:
        y = y + bias
    elif n in (2, 6):
        y = y + bias[:n]
    return y, kind, n * padded


events = []
inputs = [torch.randn(n, 8) for n in [7] * 15 + [(5 * i) % 31 for i in range(62)]]
for x in inputs:
    y, kind, number = work(x)
    events.append((kind, number, tuple(y.shape), round(float(y.sum()), 4)))
print(events)

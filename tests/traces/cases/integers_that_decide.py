# An integer that changes and stands in no operation's arguments, or in one that is no size, decides what is done: each has its own trace. What a view that moves looks at is asked of the view.
# expect: compiled>=0.2
import random

import torch

random.seed(5)
x = torch.arange(64.0).view(4, 4, 4)
m = torch.tensor([[1.0, 1.0], [0.0, 1.0]])
flat, pieces, turned, powers, moved, steps = {}, {}, {}, {}, {}, {}
for i in range(500):
    k = random.randint(0, 2)
    flat.setdefault(k, set()).add(tuple((x.flatten(k) + 1).shape))
for i in range(500):
    k = random.randint(1, 4)
    y = x[0].chunk(k)[0]
    pieces.setdefault(k, set()).add((tuple(y.shape), y.sum().item()))
for i in range(500):
    k = random.randint(0, 3)
    turned.setdefault(k, set()).add(torch.rot90(x[0], k).stride())
for i in range(500):
    k = random.randint(0, 4)
    powers.setdefault(k, set()).add((torch.linalg.matrix_power(m, k) + 0)[0, 1].item())
for i in range(500):
    k = random.randint(-4, 3)
    y = x[k]
    moved.setdefault(k % 4, set()).add((y.storage_offset(), (y * 2).sum().item()))
for i in range(300):
    k = random.randint(1, 3)
    y = x[:, ::k]
    steps.setdefault(k, set()).add((y.stride(), y.is_contiguous(), (y + 1).sum().item()))
for seen in (flat, pieces, turned, powers, moved, steps):
    print(sorted((k, sorted(each)) for k, each in seen.items()))

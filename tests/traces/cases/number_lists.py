# Lists of numbers that become tensors and are other ones each time: indices, targets; Python objects with a length; slices of iterators; annotations made while running.
# expect: traces>=5, compiled>=0.8
import collections.abc
import operator
import random
from itertools import islice

import torch
import torch.nn as nn

random.seed(0)
torch.manual_seed(0)
data = torch.randn(40, 5)
out = []
for i in range(200):
    rows = random.sample(range(40), k=4)
    picked = data[rows] * 2
    nested = data[:, [[i % 5, 1], [2, 3 * i % 5]]]
    columns = data[:, [i % 5, 0]]
    out.append(round((picked.sum() + nested.sum() + columns.sum()).item(), 2))
print(out)
print([data[[[i % 40, 1], [2, 3 * i % 5]]].shape for i in range(12)])  # two indices

out = []
for i in range(200):
    ages = [i, i + 1, 2 * i] if i % 7 else [i, 0.5, 1]  # another dtype
    t = torch.tensor(ages, dtype=torch.float32) * 0.5
    u = torch.tensor(ages) + 1
    out.append((round(t.sum().item(), 3), str(u.dtype), u.tolist()))
    if i % 20 == 19:
        ages.append(100)
print(out)

for wrong in ([0, 99], [0, -41]):
    for i in range(30):
        try:
            data[wrong if i == 28 else [i, 0]].sum()
        except IndexError as error:
            print(type(error).__name__, error)


class Window:
    def __init__(self, items):
        self.items = items

    def __len__(self):
        return len(self.items)


class Wrong:
    def __init__(self, length):
        self.length = length

    def __len__(self):
        return self.length


net = nn.Sequential(nn.Linear(5, 5), nn.Tanh(), nn.Linear(5, 3))
out = []
for i in range(200):
    window = Window(list(range(i)))
    y = net[-1](net[operator.index(i % 2)](data[:2])) if i % 2 == 0 else net[2](net[0](data[:2]))
    first = next(islice(net.children(), 1, None))
    total = sum(1 for _ in islice(net, 0, 3, 2))
    alias = collections.abc.Sequence[torch.Tensor] | collections.abc.Mapping[str, int]
    kinds = [isinstance(each, kind) for each in (rows, window, out, {}) for kind in (collections.abc.Sequence, collections.abc.Mapping, collections.abc.Sized, (set, collections.abc.Hashable))]
    out.append((len(window), round(y.sum().item(), 4), type(first).__name__, total, str(alias), sum(kinds)))
print(out[:3], out[-3:])

total = 0
for i in range(200):
    total += len(Wrong(1000 + i)) + len(data[: 1 + i % 3])
print(total)
for lengths in ([1, 2, 3, 4, -1], [1, 2, 3, 4, 2.5], [True, 2, 3, 4, 2**70], [1, 2, 3, 4, True]):
    seen = []
    try:
        for length in lengths * 12:
            seen.append((data[:1] * len(Wrong(length))).shape)
    except (ValueError, TypeError, OverflowError) as error:
        print(type(error).__name__, error, len(seen))
print(len(seen))
w = torch.randn(5, 3, requires_grad=True)
for i in range(200):
    y = (data[:4] @ w).tanh()
    grad, = torch.autograd.grad(y, w, grad_outputs=torch.ones_like(y) * i)
    (data[:2] @ w).sin().backward(torch.ones(2, 3))
print(round(grad.sum().item(), 2), round(w.grad.sum().item(), 2))

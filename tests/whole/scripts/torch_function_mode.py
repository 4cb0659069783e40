# A TorchFunctionMode counts the torch calls of some iterations of an otherwise plain inference loop.
# expect: compiled>=0.8, traces>=1
from collections import Counter

import torch
import torch.nn.functional as F
from torch.overrides import TorchFunctionMode


class Count(TorchFunctionMode):
    def __init__(self):
        super().__init__()
        self.seen = Counter()

    def __torch_function__(self, func, types, args=(), kwargs=None):
        self.seen[getattr(func, "__name__", str(func))] += 1
        return func(*args, **(kwargs or {}))


torch.manual_seed(9)
weight, bias = torch.randn(4, 6), torch.randn(4)
x = torch.randn(3, 6)


def predict(x):
    return F.softmax(F.relu(F.linear(x, weight, bias)) * 0.5, dim=-1)


counter = Count()
total = torch.zeros(4)
for step in range(60):
    if step % 20 == 10:
        with counter:
            y = predict(x * step)
    else:
        y = predict(x * step)
    total += y.sum(0)
print(sorted(counter.seen.items()))
print([f"{v:.4f}" for v in total.tolist()])

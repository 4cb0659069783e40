# A context manager class that swaps the averaged weights in and out, and may swallow an error.
# expect: compiled>=0.75, traces>=1
import torch
from torch import nn


class Swapped:
    def __init__(self, model, average, swallow=()):
        self.model, self.average, self.swallow = model, average, swallow
        self.log = []

    def __enter__(self):
        self.saved = [p.clone() for p in self.model.parameters()]
        for p, a in zip(self.model.parameters(), self.average):
            p.copy_(a)
        return self

    def __exit__(self, kind, value, trace):
        for p, s in zip(self.model.parameters(), self.saved):
            p.copy_(s)
        self.log.append(kind.__name__ if kind else "ok")
        return kind is not None and issubclass(kind, self.swallow)


torch.manual_seed(30)
model = nn.Linear(3, 2)
average = [torch.zeros_like(p) for p in model.parameters()]
swap = Swapped(model, average, (ValueError,))
x = torch.randn(4, 3)
scores = []
with torch.no_grad():
    for step in range(40):
        for p, a in zip(model.parameters(), average):
            p += 0.01 * torch.cos(p * step)
            a.mul_(0.9).add_(p, alpha=0.1)
        with swap as s:
            y = s.model(x)
            if step % 16 == 15:
                raise ValueError("bad evaluation")
            scores.append(y.sum().item())
print(len(scores), f"{sum(scores):.4f}", swap.log.count("ok"), [e for e in swap.log if e != "ok"])

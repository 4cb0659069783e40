# A tensor is filled by slices with what has a graph, so that it has one itself, and handed to backward(): an exit before that gives it the graph.
# expect: traces>=0
import torch
from torch import nn

weight = torch.ones(4, requires_grad=True)


def filled(make):
    out, h = make(2, 4), weight * 2
    out[:, :2] = h[:2]
    for k in range(2):
        out[:, 2 + k] = h[2 + k]
    return out


def changed(make):
    out, h = make(2, 4), weight * 2
    out.zero_()
    first, second = out[:, :2], out[:, 2:]
    first.add_(h[:2])
    second.copy_(h[2:]).mul_(3)
    return out * 1.5 + first.sum()


def train(fn, make, steps):
    seen = []
    for step in range(steps):
        y = fn(make)
        seen.append((y.requires_grad, y.is_leaf))
        torch.autograd.backward(y, torch.ones_like(y))
        kind = "third" if step % 3 == 2 else "other"
        seen.append((kind, y.sum().item(), weight.grad.tolist()))
        weight.grad = None
    return seen


for fn in (filled, changed):
    for make in (torch.empty, torch.zeros):
        print(fn.__name__, make.__name__, train(fn, make, 18))

torch.manual_seed(0)
model, x = nn.AdaptiveLogSoftmaxWithLoss(17, 8, [2]), torch.randn(9, 17)
for step in range(12):
    y = model.log_prob(x)
    torch.autograd.backward(y, y)
    if step % 3:
        model.zero_grad()
    print(step, f"{y.sum().item():.3f}", [None if p.grad is None else f"{p.grad.sum().item():.2f}" for p in model.parameters()])

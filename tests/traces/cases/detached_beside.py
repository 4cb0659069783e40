# detach() gives a tensor that looks like the one with the graph: uses of that one behind it keep its gradient where the trace ends, or is left, before backward().
# expect: traces>=1
import random

import torch
import torch.nn.functional as F

torch.manual_seed(57)
random.seed(57)
weight, table = torch.nn.Parameter(torch.randn(4)), torch.nn.Parameter(torch.randn(11, 4))


def masked():
    x = weight * 2
    return (x * (x.detach() > 0)).sum()


def straight_through():
    x = F.embedding(torch.tensor([1, 3, 5]), table) * weight
    rounded = x + (x.round() - x).detach()
    return (rounded * x.detach() + x).pow(2).mean()


def several():
    x = weight.sin()
    first, second = x.detach(), x.detach().requires_grad_(False)
    total = (first * x).sum() + (second + x).pow(2).sum()
    return total - x.detach().sum() * total.detach()


def train(loss_of, between, steps):
    seen = []
    for step in range(steps):
        weight.grad = table.grad = None
        loss = loss_of()
        between(step)
        loss.backward()
        seen.append([None if p.grad is None else [round(value, 4) for value in p.grad.flatten().tolist()[:8]] for p in (weight, table)])
    return seen


for loss_of in (masked, straight_through, several):
    for between in (lambda step: random.shuffle([1, 2]), lambda step: None, lambda step: print(end="" if step % 3 else ".")):
        print(loss_of.__name__, train(loss_of, between, 16))

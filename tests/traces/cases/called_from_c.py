# Builtins that call Python code back, or iterate over what it gives, are followed: map, filter, reduce, max and min of tensors, enumerate and zip of modules' generators and of objects with an __iter__ in Python.
# They are as lazy as C's, raise as these do, and tracebacks show no frames of dynvm's.
# expect: compiled>=0.5
import functools
import itertools
import sys
import traceback
import torch
import torch.nn as nn

torch.manual_seed(0)
net, ema = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 3)), nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 3))
numbers = nn.ParameterList([nn.Parameter(torch.randn(3)) for _ in range(4)])
order = []


def noted(x):
    order.append("called")
    return x * 0.5


class Steps:
    def __init__(self, n): self.n = n
    def __iter__(self):
        for k in range(self.n):
            order.append(k)
            yield k


def training():
    optimizer, total = torch.optim.SGD([*net.parameters(), *numbers], lr=0.05), 0.0
    for i in range(50):
        x = torch.full((2, 3), i / 50)
        y = net(x) + sum(c * x ** k for k, c in enumerate(numbers)) + sum(map(torch.sin, numbers))
        y = functools.reduce(lambda a, b: a * 0.9 + b.sum(), filter(lambda p: p.dim() == 1, net.parameters()), y)
        worst = max(l.pow(2).mean() for l in y.unbind(1))
        best = min(y[0].sum(), y[1].sum(), worst)
        loss = worst + 0.1 * best.abs() + y.pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        with torch.no_grad():
            for p, q in zip(net.parameters(), ema.parameters()): q.lerp_(p, 0.1)
            for n, ((name, a), b) in enumerate(zip(net.named_parameters(), ema.parameters())): total += (a - b).abs().sum().item() * n * len(name)
            for layer, k in zip(net, itertools.count()): total += k * len(list(layer.parameters()))
        total += loss.item() + (worst is best)
    return f"{total:.2f}"


def laziness():
    x, kinds = torch.ones(3), set()
    for i in range(40):
        order.clear()
        for k, h in enumerate(map(noted, (x, x + 1, x + 2))):
            order.append(k)
            if k == i % 4: break
        for k, s in zip(itertools.count(), Steps(3)): x = x * 0.9 + k * s
        m = map(noted, [x])
        kinds.add(type(m).__name__)
        first = next(m)
        kinds.add(type(filter(None, [1, 0])).__name__)
        x = first + len(list(filter(None, [1, 0, 2]))) + sum(filter(lambda v: v > 1, [1, 2, 3]))
    return x, order, sorted(kinds)


def breaks(x, i):
    if i == 33: raise ValueError("broken")
    return x * 0.5


def errors():
    x, said = torch.ones(2), []
    for i in range(40):
        try:
            x = sum(map(lambda v: breaks(v, i), (x, x + 1)))
            x = functools.reduce(lambda a, b: breaks(a + b, i + 1), (x, x), x)
            if i % 13 == 5: functools.reduce(lambda a, b: a, [])
            if i % 13 == 7: max([])
            if i % 13 == 8: x = max(x, torch.ones(2))
            if i % 13 == 9: next(map(noted, []))
        except (ValueError, TypeError, RuntimeError, StopIteration) as e:
            said.append((type(e).__name__, str(e)[:40], [f.name for f in traceback.extract_tb(sys.exc_info()[2])]))
            x = x * 0.5
    return x, said


for work in (training, laziness, errors): print(work())

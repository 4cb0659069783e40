# `with` on a generator's context manager: leaving it ends the generator, an exception that contextlib catches; the loop has one trace for it.
# expect: compiled>=0.7
import contextlib

import torch

torch.manual_seed(0)
net = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.Tanh(), torch.nn.Linear(8, 4))
count = {"in": 0, "out": 0, "caught": 0}


@contextlib.contextmanager
def evaluating(net):
    was = net.training
    net.eval()
    count["in"] += 1
    try:
        yield net
    except ZeroDivisionError:
        count["caught"] += 1
    finally:
        net.train(was)
        count["out"] += 1


@contextlib.contextmanager
def doubled(x):
    y = x * 2
    yield y
    count["last"] = tuple(y.shape)


def goes_on(n):
    for k in range(n):
        yield k


x = torch.zeros(4)
for i in range(300):
    with evaluating(net) as n, torch.no_grad(), doubled(x) as y:
        x = torch.sin(n(x) + y)
    if i % 67 == 5:
        with evaluating(net):
            1 / 0
print([f"{v:.3f}" for v in x.tolist()], count, net.training)

# A generator that has not ended where those before had, and the other way round.
steps = goes_on(1)
seen = []
for i in range(200):
    x = torch.tanh(x + 0.1)
    try:
        seen.append(next(steps))
    except StopIteration:
        seen.append(-1)
    if i % 50 == 49:
        steps = goes_on(30 if i % 100 == 99 else 0)
print(sum(seen), seen[45:60], seen[148:156], f"{x.sum().item():.3f}")

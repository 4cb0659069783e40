# Compiled functions, methods, static methods, closures, lambdas and partials in hot loops.
import functools

import torch

torch.manual_seed(0)


@torch.compile(backend="eager")
def plain(x):
    return (x * 2).sum()


class Scaler:
    def __init__(self, by):
        self.by = by

    @torch.compile(backend="eager")
    def method(self, x):
        return (x * self.by).sum()

    @staticmethod
    @torch.compile(backend="eager")
    def static(x):
        return x.mean() - 1


def closure(by):
    kept = torch.full((3,), by)

    @torch.compile(backend="eager")
    def inner(x):
        return (x + kept).sum()

    return inner


first, inner = Scaler(2.0), closure(3.0)
anonymous = torch.compile(lambda x: x.exp().sum(), backend="eager")
partial = torch.compile(functools.partial(torch.add, alpha=2), backend="eager")
sums = torch.zeros(6)
for i in range(60):
    x = torch.full((3,), i / 60)
    sums += torch.stack([plain(x), first.method(x), Scaler.static(x), inner(x), anonymous(x), partial(x, x).sum()])
print(sums)

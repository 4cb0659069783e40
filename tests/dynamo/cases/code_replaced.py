# A compiled function whose inner functions, defaults, closures or code change between calls.
import torch


def one(x):
    return x + 1


def two(x):
    return x + 2


def helper(x, by=3):
    return x * by


@torch.compile(backend="eager")
def f(x):
    return one(x) + helper(x)


total = 0.0
for i in range(90):
    if i == 30:
        one.__code__ = two.__code__
    if i == 60:
        helper.__defaults__ = (5,)
    total += f(torch.ones(())).item()
print(total)

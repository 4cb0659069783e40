# Generators, context managers, comprehensions and exceptions in compiled functions called from hot loops.
import contextlib

import torch


@contextlib.contextmanager
def doubled(log):
    log["in"] = 1
    yield 2
    log["out"] = 2


def parts(x):
    for i in range(3):
        yield x + i


@torch.compile(backend="eager")
def f(x, log):
    with doubled(log) as by:
        out = sum(p.sum() for p in parts(x)) * by
    try:
        raise ValueError("inside")
    except ValueError:
        out = out + 1
    return out + sum([x[i] for i in range(2)])


total, log = torch.zeros(()), {}
for i in range(60):
    total = total + f(torch.full((3,), i * 1.0), log)
print(total, len(log))


@torch.compile(backend="eager")
def raises(x, n):
    y = x + 1
    if n % 7 == 3:
        raise KeyError(n)
    return y


caught = 0
for i in range(60):
    try:
        total = total + raises(torch.ones(()), i)
    except KeyError:
        caught += 1
print(total, caught)

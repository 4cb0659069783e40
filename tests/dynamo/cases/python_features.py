# What compiled functions leave behind in Python: frames, tracebacks, dataclasses, named tuples, sets, numbers of several kinds.
import collections
import dataclasses
import traceback

import torch

Point = collections.namedtuple("Point", "x y")


@dataclasses.dataclass
class Out:
    value: torch.Tensor
    n: int


@torch.compile(backend="eager")
def f(x, n, name, options):
    p = Point(x, x + n)
    y = p.y * len(name) + options["a"]
    return Out(y.sum(), n + 1), {k: y * v for k, v in options.items()}, p


total, numbers = torch.zeros(()), set()
for i in range(60):
    out, more, p = f(torch.ones(2), i % 3, "ab", {"a": 1.5, "b": i % 2})
    total = total + out.value + more["a"].sum() + more["b"].sum() + p.x.sum()
    numbers.add((out.n, type(p).__name__))
print(total, sorted(numbers))


@torch.compile(backend="eager")
def fails(x):
    return x.view(7)


for i in range(4):
    try:
        fails(torch.ones(2))
    except Exception as error:
        print(type(error).__name__, len(traceback.extract_tb(error.__traceback__)) > 0)

# nonstrict_trace, substitute_in_graph, torch.compiler.wrap_numpy and NumPy code in compiled functions.
import operator

import numpy as np
import torch


def count(x):
    return len([1 for _ in range(3)]) + x


@torch._dynamo.nonstrict_trace
def inside(x):
    return x * 2 + 1


@torch.compiler.substitute_in_graph(operator.indexOf)
def index_of(items, value, /):
    for k, item in enumerate(items):
        if item is value or item == value:
            return k
    raise ValueError("not there")


@torch.compile(backend="aot_eager", fullgraph=True)
def f(x):
    return inside(x) + count(1) + operator.indexOf([5, 6, 7], 6)


@torch.compile(backend="eager")
def with_numpy(x):
    return np.sin(x) + np.ones(2)


total, numbers = torch.zeros(2), np.zeros(2)
for i in range(50):
    total = total + f(torch.full((2,), i * 0.5))
    numbers = numbers + with_numpy(np.full(2, i * 0.1))
print(total, numbers)

# Compiled functions that C code calls: map, sorted, functools.reduce, __torch_function__, properties.
import functools

import torch

calls = []


def backend(graph, inputs):
    def run(*args):
        calls.append(1)
        return graph.forward(*args)

    return run


f = torch.compile(lambda x: x.sum() * 2, backend=backend)
add = torch.compile(lambda a, b: a + b, backend=backend)


class Thing:
    def __init__(self, x):
        self.x = x

    @property
    @torch.compile(backend=backend)
    def value(self):
        return self.x * 3

    __call__ = torch.compile(lambda self, y: self.x + y, backend=backend)


total = torch.zeros(())
for i in range(50):
    xs = [torch.full((2,), float((i * k) % 5)) for k in range(3)]
    total = total + sum(map(f, xs)) + functools.reduce(add, xs).sum()
    total = total + sorted(xs, key=lambda x: f(x).item())[0].sum()
    thing = Thing(xs[1])
    total = total + thing.value.sum() + thing(xs[2]).sum()
print(total, len(calls))

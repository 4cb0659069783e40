# Compiled functions that call compiled functions and modules; one module compiled twice; compile of a bound method in place.
import torch

torch.manual_seed(0)
calls = []


def backend(graph, inputs):
    def run(*args):
        calls.append(len(args))
        return graph.forward(*args)

    return run


@torch.compile(backend=backend)
def inner(x):
    return x * 2


@torch.compile(backend=backend)
def outer(x):
    return inner(x) + inner(x + 1)


layer = torch.nn.Linear(2, 2)
layer.compile(backend=backend)
twice = torch.compile(torch.compile(layer, backend=backend), backend=backend)
total = torch.zeros(2)
for i in range(60):
    total = total + outer(torch.ones(2)) + layer(torch.ones(2)).detach() + twice(torch.ones(2)).detach() + inner(total * 0.01)
print(total, len(calls))

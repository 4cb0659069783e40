# torch.compiler.disable, and disable inside a compiled function; the disabled loop may be compiled by others.
import torch

compiled = []


def backend(graph, inputs):
    compiled.append(1)
    return graph.forward


@torch.compiler.disable
def outside(x):
    return x * torch.compiler.is_compiling()


@torch.compile(backend=backend)
def f(x):
    return outside(x + 1) + x * 3


@torch.compiler.disable(recursive=False)
def shallow(x):
    return f(x) + 1


@torch.compiler.disable
def train(total):
    for i in range(80):
        x = torch.full((2,), float(i))
        total = total + f(x).relu() + shallow(x) * 0.5 + outside(x)
    return total


print(train(torch.zeros(2)), len(compiled))

# Frames that torch's own compiler skips run as they are, with hot loops in them; those that they call are compiled.
import torch

compiled = []


def backend(graph, inputs):
    compiled.append(len(graph.graph.nodes))

    def run(*args):
        calls.append(1)
        return graph.forward(*args)

    return run


calls = []


def helper(x):
    return x.sin() + 1


@torch.compile(backend=backend)
def f(x):
    total = x
    for i in range(80):
        torch._dynamo.graph_break()
        total = total + helper(x * i)
    return total


print(f(torch.ones(2)), len(calls), len(compiled))
print(f(torch.zeros(2)), len(calls), len(compiled))

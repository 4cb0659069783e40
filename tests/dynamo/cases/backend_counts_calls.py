# Calls of a back end's function are as many as calls of the compiled one; compilations too.
import torch

calls, compilations = [], []


def backend(graph, inputs):
    compilations.append(len(graph.graph.nodes))

    def run(*args):
        calls.append(1)
        return graph.forward(*args)

    return run


@torch.compile(backend=backend)
def f(x, y):
    return torch.relu(x) * y + 1


total = torch.zeros(4)
for i in range(100):
    total = total + f(torch.full((4,), i - 50.0), torch.ones(4))
print(total, len(calls), compilations)

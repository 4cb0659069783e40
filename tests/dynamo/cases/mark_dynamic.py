# Dynamic dimensions: marked, automatic, and a shape that is asked for.
import torch

compilations = []


def backend(graph, inputs):
    compilations.append(len(inputs))
    return graph.forward


@torch.compile(backend=backend)
def marked(x):
    return x.sum() / x.shape[0]


total = 0.0
for i in range(60):
    x = torch.ones(i % 9 + 2, 3)
    torch._dynamo.mark_dynamic(x, 0)
    total += marked(x).item()
print(total, compilations)
compilations.clear()


@torch.compile(backend=backend)
def automatic(x):
    return x.sum() * x.shape[0]


total = 0.0
for i in range(60):
    total += automatic(torch.ones(i % 9 + 2, 3)).item()
print(total, compilations)
compilations.clear()


@torch.compile(backend=backend, dynamic=False)
def static(x):
    return x.sum() * x.shape[0]


total = 0.0
for i in range(60):
    total += static(torch.ones(i % 3 + 2, 3)).item()
print(total, compilations)

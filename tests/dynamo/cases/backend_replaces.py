# What a back end gives is called, each time, though it computes something else than the function does.
import torch


def backend(graph, inputs):
    return lambda x: (x.cos(),)


f = torch.compile(lambda x: x.sin(), backend=backend)
print(sum(f(torch.zeros(())).item() for _ in range(200)))

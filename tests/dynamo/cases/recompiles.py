# How often functions are compiled again, and the limit after which they run as they are.
import logging

import torch
from torch._dynamo.utils import counters

torch._logging.set_logs(dynamo=logging.ERROR)
torch._dynamo.config.recompile_limit = 4
compilations = []


def backend(graph, inputs):
    compilations.append(tuple(inputs[0].shape))
    return graph.forward


@torch.compile(backend=backend, dynamic=False)
def by_shape(x):
    return x.sum() + 1


@torch.compile(backend=backend)
def by_number(x, n):
    return x * n


@torch.compile(backend=backend)
def by_kind(x):
    return x + x


total = 0.0
for i in range(60):
    total += by_shape(torch.ones(i % 3 + 1)).item()
    total += by_number(torch.ones(2), i % 5 * 0.5).sum().item()
    total += by_kind(torch.ones(2, dtype=[torch.float32, torch.float64, torch.int64][i % 3])).sum().item()
print(total, compilations)
print(dict(counters["stats"]), dict(counters["frames"]))

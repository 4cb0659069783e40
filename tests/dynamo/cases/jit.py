# torch.jit.script and torch.jit.trace in loops with compiled functions.
import warnings

import torch

warnings.simplefilter("ignore")


@torch.jit.script
def scripted(x):
    return torch.relu(x) + 1


total = torch.zeros(2)
for i in range(30):
    traced = torch.jit.trace(lambda x: x * 2 + x.sum(), torch.ones(2))
    total = total + traced(torch.full((2,), i * 1.0)) + scripted(total * 0.1)


@torch.compile(backend="eager")
def f(x):
    return scripted(x) * 2


for i in range(60):
    total = total * 0.5 + f(total)
print(total)

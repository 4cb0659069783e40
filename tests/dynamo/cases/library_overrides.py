# A kernel of ATen's is replaced after the loop has become hot, and put back.
import warnings

import torch

warnings.simplefilter("ignore")
calls = []


def run(n):
    total = torch.zeros(3)
    for i in range(n):
        total = total + torch.sin(torch.full((3,), i / 10))
    return total


print(run(100))
library = torch.library.Library("aten", "IMPL")
library.impl("sin", lambda x: (calls.append(1), torch.cos(x))[1], "CPU")
print(run(100), len(calls))
library._destroy()
print(run(100), len(calls))
library = torch.library.Library("aten", "IMPL")
library.impl("sin", lambda x: (calls.append(1), torch.cos(x))[1], "AutogradCPU")
print(run(100), len(calls))
library._destroy()
print(run(100), len(calls))

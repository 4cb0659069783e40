# A kernel is registered in the middle of a loop, by a function that the loop calls.
import warnings

import torch

warnings.simplefilter("ignore")
calls, libraries = [], []


def replace():
    libraries.append(torch.library.Library("aten", "IMPL"))
    libraries[-1].impl("exp", lambda x: (calls.append(1), x * 0 + 5)[1], "CPU")


total = torch.zeros(2)
for i in range(120):
    if i == 60:
        replace()
    if i == 90:
        libraries.pop()._destroy()
    total = total + torch.exp(torch.ones(2) * -1)
print(total, len(calls))

# C++ code makes tensors of numbers and reads them: a traced function holds its constants so, and its interpreter asks for their values.
# expect: traces>=1
import warnings

import torch

warnings.simplefilter("ignore")
total = torch.zeros(2)
for i in range(40):
    traced = torch.jit.trace(lambda x: x * 2 + x.sum() - 0.5, torch.ones(2))
    total = total * 0.25 + traced(torch.full((2,), i * 1.0))
print(total)

traced = torch.jit.trace(lambda x: (x * 3 + 1.5) * x.max(), torch.ones(2))
for i in range(60):
    total = torch.tanh(total * 0.5) + traced(torch.full((2,), i * 0.1))
print(total)

# Sizes that are Python numbers of the loop, not of its inputs.
# expect: traces>=1
import torch

torch.manual_seed(7)
table = torch.randn(30, 6)
totals = []
for i in range(80):
    n = 5 + i % 4
    x = table[:n] @ table[i % 20].unsqueeze(1)
    y = torch.zeros(n, 2) + x
    totals.append((n, tuple(y.shape), round(y.sum().item(), 4)))
print(totals)

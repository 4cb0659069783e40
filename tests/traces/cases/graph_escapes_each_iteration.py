# Each iteration's output keeps a graph into the next: truncated back-propagation through time.
import torch
from torch import nn

torch.manual_seed(0)
cell = nn.RNNCell(3, 5)
h = torch.zeros(2, 5)
total = 0
for i in range(48):
    h = cell(torch.full((2, 3), 0.1 * (i % 4)), h)
    total = total + h.pow(2).mean()
    if i % 8 == 7:
        total.backward()
        with torch.no_grad():
            for p in cell.parameters():
                p -= 0.1 * p.grad
        cell.zero_grad()
        h = h.detach()
        print(i, f"{total.item():.6f}")
        total = 0

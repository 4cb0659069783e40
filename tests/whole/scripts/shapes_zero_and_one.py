# Sizes 0 and 1: empty batches through layers and reductions, one-row batches that broadcast, squeeze that depends on them.
# expect: compiled>=0.75, traces>=1
import torch
from torch import nn

torch.manual_seed(122)
layer = nn.Linear(3, 2)
weights = torch.rand(4, 1)
shapes, total = {}, 0.0
with torch.no_grad():
    for step in range(80):
        rows = (4, 0, 1, 4, 1)[step % 5]
        x = torch.ones(rows, 3) * (1 + step % 3)
        y = layer(x).squeeze(0)
        z = y * weights if rows in (1, 4) else y
        peak = z.max().item() if z.numel() else -1.0
        total += z.sum().item() + peak + torch.cat([z.reshape(-1), x.reshape(-1)]).numel()
        shapes[tuple(z.shape)] = shapes.get(tuple(z.shape), 0) + 1
print(shapes, f"{total:.4f}", layer(torch.empty(0, 3)).sum().item())

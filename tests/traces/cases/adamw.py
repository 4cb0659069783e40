# AdamW in its single-tensor and its foreach form, on two copies of one model.
# expect: compiled>=0.54
import copy

import torch
from torch import nn

torch.manual_seed(3)
first = nn.Sequential(nn.Linear(6, 12), nn.GELU(), nn.Linear(12, 3))
second = copy.deepcopy(first)
x, y = torch.randn(16, 6), torch.randn(16, 3)
for model, foreach in ((first, False), (second, True)):
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01, weight_decay=0.1, foreach=foreach)
    for i in range(50):
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(model(x), y)
        loss.backward()
        optimizer.step()
    print(foreach, f"{loss.item():.6f}")
print(max((a - b).abs().max().item() for a, b in zip(first.parameters(), second.parameters())) < 1e-5)

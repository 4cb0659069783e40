# p.data is clamped and replaced, and an average of the weights is kept with copy_ and lerp_.
import copy

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Linear(4, 3)
average = copy.deepcopy(model)
optimizer = torch.optim.SGD(model.parameters(), lr=0.2)
x, y = torch.randn(8, 4), torch.randn(8, 3)
for i in range(50):
    optimizer.zero_grad()
    loss = nn.functional.mse_loss(model(x), y)
    loss.backward()
    optimizer.step()
    for p in model.parameters():
        p.data.clamp_(-0.3, 0.3)
    with torch.no_grad():
        for a, p in zip(average.parameters(), model.parameters()):
            a.lerp_(p, 0.1)
    if i == 25:
        model.weight.data = torch.zeros(3, 4)
    if i == 35:
        model.bias.data.copy_(average.bias.data)
print(f"{loss.item():.6f}", [f"{v:.5f}" for v in average.weight.flatten().tolist()])
print([f"{v:.5f}" for v in model.weight.flatten().tolist()])

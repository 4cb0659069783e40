# A coin from Python's random decides between two ways through a step: mixup or plain data.
# expect: compiled>=0.65, traces>=1
import random

import torch
from torch import nn

random.seed(3)
torch.manual_seed(95)
model = nn.Linear(5, 3)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
x, y = torch.randn(12, 5), nn.functional.one_hot(torch.arange(12) % 3, 3).float()
mixed = 0
for step in range(80):
    if random.random() < 0.5:
        share = random.betavariate(2, 2)
        inputs, targets = share * x + (1 - share) * x.flip(0), share * y + (1 - share) * y.flip(0)
        mixed += 1
    else:
        inputs, targets = x, y
    optimizer.zero_grad()
    loss = nn.functional.cross_entropy(model(inputs), targets)
    loss.backward()
    optimizer.step()
print(mixed, f"{loss.item():.5f}", f"{model.weight.sum().item():.5f}")

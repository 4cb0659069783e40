# An exit between forward and backward: the loss is checked, and a bad step is skipped.
# expect: compiled>=0.62
import math

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Linear(3, 2)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
skipped = []
for i in range(50):
    x = torch.full((4, 3), 0.1 * (i % 7))
    if i % 12 == 11:
        x[0, 0] = math.nan
    optimizer.zero_grad()
    loss = (model(x) - 1).pow(2).mean()
    if loss.isnan():
        skipped.append(i)
        print("skipped", i, loss.item(), loss.requires_grad)
        continue
    if i % 13 == 5:
        print("used differently", f"{torch.autograd.grad(loss, model.bias, retain_graph=True)[0].sum().item():.6f}")
    loss.backward()
    optimizer.step()
print(skipped, f"{loss.item():.6f} {model.weight.sum().item():.6f}")

# The step is a closure over its model, and counts in a nonlocal variable.
# expect: compiled>=0.86
import torch
from torch import nn


def make_step():
    torch.manual_seed(0)
    model = nn.Linear(4, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    calls = 0

    def step(x, y, scale=1.0):
        nonlocal calls
        calls += 1
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(model(x), y) * scale
        loss.backward()
        optimizer.step()
        return loss.item(), calls

    return step


step = make_step()
x, y = torch.randn(8, 4), torch.randn(8, 2)
for i in range(60):
    value, calls = step(x, y, scale=1.0 + i * 0.01)
print(f"{value:.6f}", calls)

# Gradient accumulation over micro-batches with a step at the end and a remainder flushed after the loop.
# expect: compiled>=0.5, traces>=1
import torch
from torch import nn

torch.manual_seed(145)
model = nn.Sequential(nn.Linear(4, 6), nn.Tanh(), nn.Linear(6, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.3)
data = torch.randn(50, 2, 4)
every, steps, pending = 4, 0, 0
for number, x in enumerate(data, start=1):
    loss = (model(x) - x.mean(1, keepdim=True)).pow(2).mean() / every
    loss.backward()
    pending += 1
    if number % every == 0:
        optimizer.step()
        optimizer.zero_grad()
        steps, pending = steps + 1, 0
norms = [p.grad.norm().item() for p in model.parameters()]
if pending:
    optimizer.step()
print(steps, pending, [f"{n:.5f}" for n in norms], f"{loss.item():.5f}")

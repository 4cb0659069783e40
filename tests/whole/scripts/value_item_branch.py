# A loss spike, seen through .item(), makes the loop restore the last good weights and lower its rate.
# expect: compiled>=0.45, traces>=1
import torch
from torch import nn

torch.manual_seed(71)
model = nn.Linear(4, 1)
x = torch.randn(16, 4)
y = x @ torch.tensor([[1.0], [-2.0], [0.5], [0.0]])
good = {k: v.clone() for k, v in model.state_dict().items()}
best, rate, restored = float("inf"), 0.05, []
for step in range(80):
    loss = (model(x) - y).pow(2).mean()
    value = loss.item()
    if value > best * 2:
        model.load_state_dict(good)
        rate *= 0.5
        restored.append(step)
        continue
    if value < best:
        best = value
        good = {k: v.clone() for k, v in model.state_dict().items()}
    model.zero_grad()
    loss.backward()
    with torch.no_grad():
        for p in model.parameters():
            p -= rate * p.grad * (20 if step in (30, 50) else 1)
print(restored, rate, f"{best:.4f}")

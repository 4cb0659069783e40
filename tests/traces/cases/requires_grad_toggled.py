# A layer is frozen at iteration 20 and thawed at iteration 40.
# expect: compiled>=0.26
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(4, 6), nn.Tanh(), nn.Linear(6, 2))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
x, y = torch.randn(8, 4), torch.randn(8, 2)
for i in range(60):
    if i in (20, 40):
        model[0].requires_grad_(i == 40)
    optimizer.zero_grad()
    loss = nn.functional.mse_loss(model(x), y)
    loss.backward()
    optimizer.step()
    if i % 10 == 9:
        print(i, f"{loss.item():.6f} {model[0].weight.sum().item():.6f}", model[0].weight.grad is None)

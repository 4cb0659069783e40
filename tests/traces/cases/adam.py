# Adam: the bias correction is a number that changes in each iteration, and must not be frozen.
# expect: compiled>=0.9
import torch
from torch import nn

torch.manual_seed(2)
model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 1))
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
x = torch.randn(32, 8)
y = x.abs().sum(1, keepdim=True)
for i in range(80):
    optimizer.zero_grad()
    loss = ((model(x) - y) ** 2).mean()
    loss.backward()
    optimizer.step()
    if i % 10 == 9:
        print(i, f"{loss.item():.6f}", f"{sum(p.abs().sum().item() for p in model.parameters()):.6f}")
for p in model.parameters():
    state = optimizer.state[p]
    print(state["step"].item(), f"{state['exp_avg'].sum().item():.6g} {state['exp_avg_sq'].sum().item():.6g}")

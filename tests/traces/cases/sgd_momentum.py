# SGD with momentum, weight decay and Nesterov: the optimizer's state is right after each step. (Last-bit changes of the first weights move
# the momentum's sums by 1e-5 under python alone.)
# expect: compiled>=0.85
import torch
from torch import nn

torch.manual_seed(1)
model = nn.Sequential(nn.Linear(8, 16), nn.Tanh(), nn.Linear(16, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9, weight_decay=1e-3, nesterov=True)
x = torch.randn(32, 8)
y = x.pow(2).sum(1, keepdim=True)
losses = []
for i in range(60):
    optimizer.zero_grad()
    loss = nn.functional.mse_loss(model(x), y)
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
print(" ".join(f"{l:.5g}" for l in losses))
for p in model.parameters():
    print(f"{p.sum().item():.6f} {optimizer.state[p]['momentum_buffer'].sum().item():.4f}")

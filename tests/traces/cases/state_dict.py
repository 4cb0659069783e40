# state_dict is taken and loaded in the middle of training, for model and optimizer.
import copy

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 1))
optimizer = torch.optim.Adam(model.parameters(), lr=0.02)
x, y = torch.randn(10, 3), torch.randn(10, 1)
losses = []
for i in range(60):
    if i == 20:
        saved = copy.deepcopy((model.state_dict(), optimizer.state_dict()))
    if i == 40:
        model.load_state_dict(saved[0])
        optimizer.load_state_dict(saved[1])
    optimizer.zero_grad()
    loss = nn.functional.mse_loss(model(x), y)
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
print([f"{l:.6f}" for l in losses[::6]])
print(max(abs(a - b) for a, b in zip(losses[20:40], losses[40:])) < 1e-5)

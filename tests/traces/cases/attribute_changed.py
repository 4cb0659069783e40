# An attribute of the model changes at iteration 30: the trace may not go on with the old value.
# expect: compiled>=0.65
import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(4, 4)
        self.scale = 1
        self.use_tanh = False

    def forward(self, x):
        x = self.lin(x) * self.scale
        return torch.tanh(x) if self.use_tanh else x


torch.manual_seed(0)
model = Net()
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
x = torch.randn(6, 4)
for i in range(60):
    if i == 30:
        model.scale = 2
    if i == 45:
        model.use_tanh = True
        optimizer.param_groups[0]["lr"] = 0.01
    optimizer.zero_grad()
    loss = (model(x) - 1).pow(2).mean()
    loss.backward()
    optimizer.step()
    if i % 5 == 0:
        print(i, f"{loss.item():.6f}")

# Wrong shapes at iteration 50 end the script with the traceback that python prints.
# alone: its traceback is compared as users see it
import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = nn.Linear(6, 8)
        self.b = nn.Linear(8, 2)

    def forward(self, x):
        x = torch.relu(self.a(x))
        return self.b(x)


torch.manual_seed(0)
net = Net()
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for i in range(100):
    x = torch.ones(4, 6 if i != 50 else 7) * 0.1
    optimizer.zero_grad()
    loss = net(x).pow(2).mean()
    loss.backward()
    optimizer.step()
    if i % 10 == 0:
        print(i, f"{loss.item():.6f}", flush=True)

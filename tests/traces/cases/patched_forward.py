# forward is replaced on the instance, then on the class, then a function of the module's globals is replaced.
import torch
from torch import nn


def activation(x):
    return x.relu()


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(4, 4)

    def forward(self, x):
        return activation(self.lin(x))


torch.manual_seed(0)
net, other = Net(), Net()
x = torch.randn(3, 4)
old = net.forward
with torch.no_grad():
    for i in range(60):
        if i == 15:
            net.forward = lambda x: old(x) + 1
        if i == 30:
            Net.forward = lambda self, x: self.lin(x) * 3
        if i == 40:
            del net.forward
        if i == 50:
            nn.Linear.forward, keep = lambda self, x: x @ self.weight.T, nn.Linear.forward
        if i == 55:
            nn.Linear.forward = keep
            activation = torch.tanh
        print(i, f"{net(x).sum().item():.5f} {other(x).sum().item():.5f} {activation(x).sum().item():.5f}")

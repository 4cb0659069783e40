# Methods are patched on an instance with types.MethodType, on the class, and on a base class, and taken back.
# expect: compiled>=0.8, traces>=1
import types

import torch
from torch import nn


class Base(nn.Module):
    def scale(self, x):
        return x * 0.5


class Net(Base):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(3, 3)

    def forward(self, x):
        return self.scale(torch.tanh(self.layer(x)))


def doubled(self, x):
    return x * 2 + self.layer.bias


torch.manual_seed(106)
net, twin = Net(), Net()
x = torch.randn(2, 3)
sums = []
with torch.no_grad():
    for step in range(90):
        if step == 20:
            net.scale = types.MethodType(doubled, net)
        if step == 40:
            del net.scale
        if step == 50:
            Base.scale = lambda self, x: x - 1
        if step == 65:
            Net.scale = doubled
        if step == 80:
            del Net.scale
        sums.append((net(x).sum() + 0.1 * twin(x).sum()).item())
print([f"{s:.4f}" for s in sums[5::10]])

# Attributes of a module and of a nested config object change at chosen steps: slope, a flag, and a tuple.
# expect: compiled>=0.8, traces>=1
import torch
from torch import nn


class Config:
    def __init__(self):
        self.slope, self.normalise, self.window = 0.1, False, (0, 4)


class Net(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.config = config
        self.layer = nn.Linear(4, 4)
        self.gain = 1.0

    def forward(self, x):
        y = nn.functional.leaky_relu(self.layer(x), self.config.slope) * self.gain
        low, high = self.config.window
        y = y[:, low:high]
        return y / y.norm() if self.config.normalise else y


torch.manual_seed(103)
net = Net(Config())
x = torch.randn(3, 4)
sums = []
with torch.no_grad():
    for step in range(80):
        if step == 20:
            net.gain = 0.5
        elif step == 35:
            net.config.slope = 0.3
        elif step == 50:
            net.config.normalise = True
        elif step == 65:
            net.config.window = (1, 3)
        sums.append(net(x + 0.01 * step).sum().item())
print([f"{s:.4f}" for s in sums[4::10]])

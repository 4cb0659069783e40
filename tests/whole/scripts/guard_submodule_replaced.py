# A submodule is replaced by assignment, in a Sequential by index, and by setattr of a wrapped one (a LoRA adapter).
# expect: compiled>=0.8, traces>=1
import torch
from torch import nn


class Lora(nn.Module):
    def __init__(self, base, rank=2):
        super().__init__()
        self.base = base
        self.down = nn.Parameter(torch.randn(rank, base.in_features) * 0.1)
        self.up = nn.Parameter(torch.ones(base.out_features, rank) * 0.1)

    def forward(self, x):
        return self.base(x) + x @ self.down.t() @ self.up.t()


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(4, 4), nn.ReLU(), nn.Linear(4, 4))
        self.head = nn.Linear(4, 2)

    def forward(self, x):
        return self.head(self.body(x))


torch.manual_seed(104)
net = Net()
x = torch.randn(5, 4)
sums = []
with torch.no_grad():
    for step in range(80):
        if step == 20:
            net.head = nn.Linear(4, 2)
        if step == 40:
            net.body[1] = nn.Tanh()
        if step == 60:
            for name, child in list(net.body.named_children()):
                if isinstance(child, nn.Linear):
                    setattr(net.body, name, Lora(child))
        sums.append(net(x).sum().item())
print([f"{s:.4f}" for s in sums[5::10]], [type(m).__name__ for m in net.body])

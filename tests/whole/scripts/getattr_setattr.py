# getattr, hasattr, setattr and delattr by names made at run time, on modules, buffers and plain objects.
# expect: compiled>=0.75, traces>=1
import torch
from torch import nn


class Bank(nn.Module):
    def __init__(self):
        super().__init__()
        for k in range(3):
            setattr(self, f"layer{k}", nn.Linear(4, 4))
            self.register_buffer(f"mean{k}", torch.zeros(4))
        self.order = ["layer0", "layer1", "layer2"]

    def forward(self, x):
        for k, name in enumerate(self.order):
            x = torch.tanh(getattr(self, name)(x))
            setattr(self, f"mean{k}", 0.9 * getattr(self, f"mean{k}") + 0.1 * x.mean(0))
            if hasattr(self, f"gain{k}"):
                x = x * getattr(self, f"gain{k}")
        return x + getattr(self, "shift", 0.0)


torch.manual_seed(45)
bank = Bank()
x = torch.randn(5, 4)
sums = []
with torch.no_grad():
    for step in range(60):
        if step == 20:
            setattr(bank, "gain1", torch.tensor(1.5))
        if step == 40:
            delattr(bank, "gain1")
            bank.shift = 0.25
        sums.append(bank(x).sum().item())
print([f"{s:.4f}" for s in sums[::10]], [f"{getattr(bank, f'mean{k}').sum().item():.4f}" for k in range(3)])

# A forward pre-hook with keyword arguments standardises inputs and fills in a missing mask before forward sees them.
# expect: compiled>=0.65, traces>=1
import torch
from torch import nn


class Masked(nn.Module):
    def __init__(self):
        super().__init__()
        self.proj = nn.Linear(5, 3)

    def forward(self, x, mask=None, scale=1.0):
        return self.proj(x * mask) * scale


def standardise(module, args, kwargs):
    (x,) = args
    if kwargs.get("mask") is None:
        kwargs = {**kwargs, "mask": (x > 0).float()}
    return ((x - x.mean(0)) / (x.std(0) + 1e-5),), kwargs


torch.manual_seed(1)
model = Masked()
model.register_forward_pre_hook(standardise, with_kwargs=True)
total = torch.zeros(3)
data = torch.randn(8, 6, 5)
given = torch.tensor([1.0, 0, 1, 0, 1])
with torch.no_grad():
    for step in range(45):
        x = data[step % 8]
        out = model(x) if step % 3 else model(x, mask=given, scale=0.5)
        total = total * 0.9 + out.sum(0)
print([f"{v:.4f}" for v in total.tolist()])

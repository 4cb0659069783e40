# Parameters are replaced: by nn.Parameter, by .data, by parametrizations, and shared with another layer.
# expect: compiled>=0.8, traces>=1
import torch
from torch import nn
from torch.nn.utils import parametrize


class Symmetric(nn.Module):
    def forward(self, w):
        return w.triu() + w.triu(1).t()


torch.manual_seed(115)
first, second = nn.Linear(3, 3), nn.Linear(3, 3)
x = torch.randn(4, 3)
sums = []
with torch.no_grad():
    for step in range(90):
        if step == 15:
            first.weight = nn.Parameter(torch.eye(3))
        if step == 30:
            first.weight.data = torch.full((3, 3), 0.2)
        if step == 45:
            second.weight = first.weight
        if step == 60:
            parametrize.register_parametrization(first, "weight", Symmetric())
        if step == 75:
            first.parametrizations.weight.original.mul_(-1.0)
        sums.append(second(torch.relu(first(x))).sum().item())
print([f"{s:.4f}" for s in sums[5::10]])

# A router sends each token to one of four experts; only those with tokens run, over index_select and index_add.
# expect: compiled>=0.4, traces>=1
import torch
from torch import nn


class Experts(nn.Module):
    def __init__(self, width, count):
        super().__init__()
        self.router = nn.Linear(width, count)
        self.experts = nn.ModuleList(nn.Linear(width, width) for _ in range(count))
        self.load = [0] * count

    def forward(self, x):
        weights, chosen = self.router(x).softmax(-1).max(-1)
        output = torch.zeros_like(x)
        for k, expert in enumerate(self.experts):
            rows = (chosen == k).nonzero().flatten()
            if rows.numel() == 0:
                continue
            self.load[k] += rows.numel()
            output.index_add_(0, rows, expert(x[rows]) * weights[rows].unsqueeze(-1))
        return output


torch.manual_seed(101)
layer = Experts(4, 4)
x = torch.randn(6, 4)
with torch.no_grad():
    for step in range(40):
        x = 0.7 * x + layer(x) + 0.1 * torch.randn(6, 4)
print(layer.load, sum(layer.load), [f"{v:.4f}" for v in x.sum(0).tolist()])

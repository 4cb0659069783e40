# functools.reduce folds a list of layers over an input, and a list of tensors into products and maxima.
# expect: compiled>=0.5, traces>=1
import operator
from functools import reduce

import torch
from torch import nn

torch.manual_seed(16)
layers = nn.ModuleList([nn.Linear(5, 5), nn.Sigmoid(), nn.Linear(5, 5), nn.Tanh()])
factors = [torch.rand(5, 5) * 0.5 for _ in range(3)]
x = torch.randn(2, 5)
best = torch.full((2, 5), -9.0)
with torch.no_grad():
    for step in range(40):
        y = reduce(lambda value, layer: layer(value), layers, x)
        product = reduce(torch.matmul, factors)
        cells = reduce(operator.mul, y.shape, 1)
        best = reduce(torch.maximum, [y, y @ product, best - 0.01])
        x = x * 0.95 + y / cells
print(cells, f"{best.sum().item():.4f}", f"{x.sum().item():.4f}")

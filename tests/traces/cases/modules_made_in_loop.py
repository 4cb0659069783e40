# Parameters made in a loop: an uninitialised tensor becomes a parameter before anything writes it.
# expect: traces>=1
import torch
from torch import nn

torch.manual_seed(4)
layers = []
for i in range(20):
    layers.append(nn.Linear(8, 8))
x = torch.ones(2, 8)
with torch.no_grad():
    for layer in layers:
        x = layer(x)
print([f"{v:.6f}" for v in x.flatten().tolist()])
print([f"{layer.weight.abs().sum().item():.5f}" for layer in layers])

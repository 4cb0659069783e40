# yield from over a nested structure of modules and tensors, with the value that a subgenerator returns.
# expect: compiled>=0.75, traces>=1
import torch
from torch import nn


def flat(items):
    count = 0
    for item in items:
        if isinstance(item, (list, tuple, nn.ModuleList)):
            count += yield from flat(item)
        else:
            count += 1
            yield item
    return count


def run(layers, x, log):
    def counting():
        log.append((yield from flat(layers)))
    for layer in counting():
        x = layer(x)
    return x


torch.manual_seed(26)
layers = [nn.Linear(4, 4), [torch.tanh, (nn.Linear(4, 4), torch.sigmoid)], nn.ModuleList([nn.LayerNorm(4)])]
x = torch.randn(3, 4)
log = []
with torch.no_grad():
    for step in range(40):
        x = run(layers, x, log) + 0.1
        if step == 30:
            layers.append(torch.relu)
print(log[0], log[-1], len(log), [f"{v:.4f}" for v in x.sum(0).tolist()])

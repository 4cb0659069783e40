# A function of the script's module is patched and restored, by unittest.mock and by assignment to its __code__.
# expect: compiled>=0.75, traces>=1
from unittest import mock

import torch


def activation(x):
    return torch.relu(x)


def other(x):
    return torch.sigmoid(x) - 0.5


def layer(x, weight):
    return activation(x @ weight)


torch.manual_seed(105)
weight = torch.randn(4, 4) * 0.6
x = torch.randn(2, 4)
sums = []
for step in range(80):
    if step == 30:
        patch = mock.patch("__main__.activation", torch.tanh)
        patch.start()
    if step == 45:
        patch.stop()
    if step == 60:
        activation.__code__ = other.__code__
    x = layer(x, weight) + 0.2
    sums.append(x.mean().item())
print([f"{s:.4f}" for s in sums[9::10]], activation.__name__)

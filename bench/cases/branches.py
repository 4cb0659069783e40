"""Ten small layers, each with `if x.mean().item() > 0`: a graph break for torch.compile at each.

The batches lie near one another, so that most branches go the same way for all of them.
"""

import torch
from torch import nn


def make():
    torch.manual_seed(0)
    layers = [nn.Linear(64, 64) for _ in range(10)]
    common = torch.randn(32, 64)
    batches = [(common + 0.1 * torch.randn(32, 64),) for _ in range(8)]

    @torch.no_grad()
    def step(x):
        for layer in layers:
            x = layer(x)
            if x.mean().item() > 0:
                x = torch.relu(x)
            else:
                x = torch.tanh(x)
        return x

    return step, batches

"""A training step whose loss is over the elements that a mask selects, as with padded batches: data decides how many, another number each step."""

import torch
import torch.nn.functional as F
from torch import nn


def make():
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(32, 64), nn.ReLU(), nn.Linear(64, 10))
    optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
    batches = [(torch.randn(256, 32), torch.randint(0, 10, (256,)), torch.rand(256) < 0.2 + 0.01 * i) for i in range(61)]

    def step(x, target, keep):
        optimizer.zero_grad()
        loss = F.cross_entropy(net(x)[keep], target[keep])
        loss.backward()
        optimizer.step()
        return loss.detach()

    return step, batches

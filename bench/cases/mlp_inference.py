"""Inference of a small MLP 32-64-64-64-8, batch 16, without gradients: Python's overhead dominates."""

import torch
from torch import nn


def make():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(32, 64), nn.GELU(), nn.Linear(64, 64), nn.GELU(), nn.Linear(64, 64), nn.GELU(),
                          nn.Linear(64, 8)).eval()
    batches = [(torch.randn(16, 32),) for _ in range(8)]

    @torch.no_grad()
    def step(inputs):
        return torch.softmax(model(inputs), dim=-1)

    return step, batches

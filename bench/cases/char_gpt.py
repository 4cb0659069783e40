"""The training step of examples/char_gpt.py: 2 layers, width 96, batch 16, context 64, AdamW, clipped gradients."""

import os
import sys

import torch
from torch import nn

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "..", "examples"))
import char_gpt as example  # noqa: E402


def make():
    torch.manual_seed(0)
    model = example.CharGpt(vocabulary=96, width=96, heads=4, layers=2)
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3, weight_decay=0.01)
    excerpts = [torch.randint(96, (example.BATCH_SIZE, example.CONTEXT + 1)) for _ in range(8)]
    batches = [(tokens[:, :-1], tokens[:, 1:]) for tokens in excerpts]

    def step(inputs, targets):
        _, loss = model(inputs, targets)
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        return loss

    return step, batches

"""The training step of examples/train_digits.py's CNN: batch 64 of 8x8 images, SGD with momentum, running loss."""

import os
import sys

import torch
from torch import nn

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "..", "examples"))
import train_digits as example  # noqa: E402


def make():
    torch.manual_seed(0)
    model = example.Cnn()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.02, momentum=0.9)
    criterion = nn.CrossEntropyLoss()
    batches = [(torch.rand(64, 1, 8, 8), torch.randint(10, (64,))) for _ in range(8)]
    total = 0.0

    def step(images, labels):
        nonlocal total
        optimizer.zero_grad()
        logits = model(images)
        loss = criterion(logits, labels)
        loss.backward()
        optimizer.step()
        total += loss.item() * len(labels)
        return loss

    return step, batches

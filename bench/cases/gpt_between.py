"""The training step of char_gpt with what scripts do between forward and backward: a line is printed."""

import os
import sys

import torch

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "..", "examples"))
import char_gpt as example  # noqa: E402

_NOWHERE = open(os.devnull, "w", encoding="utf-8")


def make():
    torch.manual_seed(0)
    model = example.CharGpt(vocabulary=96, width=32, heads=4, layers=4)
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3, weight_decay=0.01)
    excerpts = [torch.randint(96, (4, example.CONTEXT + 1)) for _ in range(8)]
    batches = [(tokens[:, :-1], tokens[:, 1:]) for tokens in excerpts]

    def step(inputs, targets):
        _, loss = model(inputs, targets)
        print("a step", file=_NOWHERE)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return loss

    return step, batches

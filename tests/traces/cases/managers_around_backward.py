# A generator's context manager around a part of a training step divides nothing: forward and backward are one trace.
# expect: compiled>=0.95
import contextlib

import torch

torch.manual_seed(0)
lin = torch.nn.Linear(6, 6)


@contextlib.contextmanager
def counted(counts, key):
    try:
        yield counts[key]
    finally:
        counts[key] += 1


@contextlib.contextmanager
def scaled(loss, by):
    yield loss * by


counts = {"forward": 0, "loss": 0, "backward": 0}
for i in range(300):
    x = torch.full((3, 6), 0.01 * (i % 7))
    with counted(counts, "forward"):
        y = lin(x).relu()
    with counted(counts, "loss"), scaled(y.mean(), 2.0) as loss:
        seen = loss.detach()
    with counted(counts, "backward"):
        loss.backward()
    with torch.no_grad():
        for p in lin.parameters():
            p -= 0.01 * p.grad
            p.grad = None
    if i % 60 == 59:
        print(i, f"{seen.item():.5f}", f"{lin.weight.sum().item():.5f}", counts)

# A checkpoint with torch.save to memory in the middle of training; a fresh model and optimizer resume and end the same.
# expect: compiled>=0.15, traces>=1
import io

import torch
from torch import nn


def build():
    model = nn.Sequential(nn.Linear(4, 6), nn.Tanh(), nn.Linear(6, 2))
    return model, torch.optim.Adam(model.parameters(), lr=0.02)


def train(model, optimizer, data, begin, end):
    for step in range(begin, end):
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(data[step % 5]), torch.arange(6) % 2)
        loss.backward()
        optimizer.step()
        yield step, loss.item()


torch.manual_seed(159)
data = torch.randn(5, 6, 4)
model, optimizer = build()
buffer = io.BytesIO()
first = []
for step, loss in train(model, optimizer, data, 0, 50):
    first.append(loss)
    if step == 24:
        torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict(), "step": step}, buffer)
buffer.seek(0)
saved = torch.load(buffer)
twin, twin_optimizer = build()
print(twin.load_state_dict(saved["model"]))
twin_optimizer.load_state_dict(saved["optimizer"])
second = [loss for _, loss in train(twin, twin_optimizer, data, saved["step"] + 1, 50)]
print(len(second), max(abs(a - b) for a, b in zip(first[25:], second)) < 1e-5, f"{second[-1]:.5f}")

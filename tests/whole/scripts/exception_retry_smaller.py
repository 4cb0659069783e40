# An out-of-memory-like error makes a step split its batch and call itself with the halves; the limit changes later.
# expect: compiled>=0.3, traces>=1
import torch
from torch import nn

torch.manual_seed(35)
model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2))
limit = 8
splits = 0


def run(x):
    global splits
    try:
        if len(x) > limit:
            raise MemoryError(f"{len(x)} rows")
        return model(x)
    except MemoryError:
        splits += 1
        half = len(x) // 2
        return torch.cat([run(x[:half]), run(x[half:])])


data = torch.randn(12, 4)
total = torch.zeros(2)
with torch.no_grad():
    for step in range(60):
        total += run(data[:6] if step % 6 else data).mean(0)
        if step == 40:
            limit = 5
print(splits, [f"{v:.4f}" for v in total.tolist()])

# Loss scaling by hand: scaled gradients are checked for infinities, steps skipped, the scale halved and doubled.
# expect: compiled>=0.85, traces>=1
import torch
from torch import nn

torch.manual_seed(157)
model = nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
scale, good, log = 2.0 ** 20, 0, []
x = torch.randn(8, 4)
for step in range(60):
    optimizer.zero_grad()
    loss = (model(x) - x[:, :1]).pow(2).mean()
    (loss * scale).backward()
    if step in (14, 40):
        model.weight.grad[0, 0] = float("inf")
    bad = any(not torch.isfinite(p.grad).all() for p in model.parameters())
    if bad:
        scale, good = scale / 2, 0
        log.append((step, int(scale)))
        continue
    for p in model.parameters():
        p.grad.div_(scale)
    optimizer.step()
    good += 1
    if good % 20 == 0:
        scale *= 2
print(log, int(scale), f"{loss.item():.6f}")

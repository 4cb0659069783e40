# LambdaLR and OneCycleLR step with each batch; the rate and momentum are read back and logged.
# expect: compiled>=0.35, traces>=1
import math

import torch
from torch import nn
from torch.optim.lr_scheduler import LambdaLR, OneCycleLR

torch.manual_seed(144)
for name in ("lambda", "cycle"):
    model = nn.Sequential(nn.Linear(3, 6), nn.ReLU(), nn.Linear(6, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    if name == "lambda":
        scheduler = LambdaLR(optimizer, lambda s: min((s + 1) / 8, 1 / math.sqrt((s + 1) / 8)))
    else:
        scheduler = OneCycleLR(optimizer, max_lr=0.2, total_steps=41)
    x = torch.randn(20, 3)
    log = []
    for step in range(40):
        loss = nn.functional.l1_loss(model(x), x.prod(1, keepdim=True))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        scheduler.step()
        log.append((scheduler.get_last_lr()[0], optimizer.param_groups[0]["momentum"]))
    print(name, [f"{lr:.4f}/{m:.3f}" for lr, m in log[::10]], f"{loss.item():.5f}")

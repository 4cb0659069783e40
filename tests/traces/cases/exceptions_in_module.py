# A module's training loop that skips a step by an exception; names are bound and deleted by the handler.
# expect: compiled>=0.65, traces>=1
import torch
from torch import nn
torch.manual_seed(0)
model = nn.Linear(4, 1)
opt = torch.optim.SGD(model.parameters(), lr=0.1)
skipped = 0
for i in range(50):
    x = torch.randn(8, 4); y = x.sum(1, keepdim=True)
    out = model(x)
    loss = ((out - y) ** 2).mean()
    try:
        if i % 4 == 3:
            raise ValueError(f"step {i}")
        opt.zero_grad()
        loss.backward()
        opt.step()
    except ValueError as e:
        skipped += 1
        continue
    model.zero_grad()
print(skipped, f"{loss.item():.6f}", 'e' in globals())

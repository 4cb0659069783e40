# copy.deepcopy of a trained model makes an ensemble whose members go on with their own data; the original stays.
# expect: compiled>=0.85, traces>=1
import copy

import torch
from torch import nn

torch.manual_seed(160)
base = nn.Sequential(nn.Linear(3, 6), nn.ReLU(), nn.Linear(6, 1))
members = [copy.deepcopy(base) for _ in range(3)]
optimizers = [torch.optim.SGD(m.parameters(), lr=0.1) for m in members]
frozen = [p.clone() for p in base.parameters()]
x = torch.randn(15, 3)
y = x.norm(dim=1, keepdim=True)
for step in range(40):
    for k, (member, optimizer) in enumerate(zip(members, optimizers)):
        rows = torch.arange(k, 15, 3)
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(member(x[rows]), y[rows])
        loss.backward()
        optimizer.step()
with torch.no_grad():
    votes = torch.stack([m(x) for m in members])
print(all(torch.equal(a, b) for a, b in zip(frozen, base.parameters())), f"{votes.mean().item():.4f} {votes.std(0).mean().item():.4f}")

# .data and .detach() share memory with a parameter: target networks, weight clipping, and a kept alias that follows.
# expect: compiled>=0.6, traces>=1
import torch
from torch import nn

torch.manual_seed(133)
online, target = nn.Linear(3, 2), nn.Linear(3, 2)
target.load_state_dict(online.state_dict())
alias, snapshot = online.weight.detach(), online.weight.data.clone()
x = torch.randn(8, 3)
for step in range(50):
    loss = (online(x) - target(x).detach() - 0.5).pow(2).mean()
    online.zero_grad()
    loss.backward()
    for p, t in zip(online.parameters(), target.parameters()):
        p.data.add_(p.grad, alpha=-0.2)
        p.data.clamp_(-0.8, 0.8)
        t.data.mul_(0.95).add_(p.data, alpha=0.05)
print(torch.equal(alias, online.weight), alias.requires_grad, f"{(alias - snapshot).abs().sum().item():.4f}")
print(f"{loss.item():.5f}", f"{target.weight.sum().item():.4f}")

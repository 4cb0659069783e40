# Stochastic depth: each block is skipped at random while training, and scaled in evaluation.
# expect: compiled>=0.4, traces>=1
import torch
from torch import nn


class Block(nn.Module):
    def __init__(self, width, keep):
        super().__init__()
        self.inner = nn.Sequential(nn.Linear(width, width), nn.GELU())
        self.keep = keep
        self.skipped = 0

    def forward(self, x):
        if not self.training:
            return x + self.keep * self.inner(x)
        if torch.rand(()).item() > self.keep:
            self.skipped += 1
            return x
        return x + self.inner(x)


torch.manual_seed(100)
net = nn.Sequential(Block(5, 0.9), Block(5, 0.7), nn.Linear(5, 1))
optimizer = torch.optim.SGD(net.parameters(), lr=0.05)
x = torch.randn(10, 5)
y = x.norm(dim=1, keepdim=True)
for step in range(70):
    optimizer.zero_grad()
    loss = nn.functional.mse_loss(net(x), y)
    loss.backward()
    optimizer.step()
net.eval()
with torch.no_grad():
    print([b.skipped for b in net[:2]], f"{loss.item():.5f} {nn.functional.mse_loss(net(x), y).item():.5f}")

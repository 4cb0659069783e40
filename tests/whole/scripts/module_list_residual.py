# A ModuleList of residual blocks, walked with zip and a per-block scale; blocks are appended while the loop runs.
# expect: compiled>=0.75, traces>=1
import torch
from torch import nn


class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.up = nn.Linear(width, 2 * width)
        self.down = nn.Linear(2 * width, width)

    def forward(self, x):
        return self.down(nn.functional.gelu(self.up(self.norm(x))))


class Tower(nn.Module):
    def __init__(self, depth, width=6):
        super().__init__()
        self.width = width
        self.blocks = nn.ModuleList(Block(width) for _ in range(depth))
        self.scales = [1.0 / (k + 1) for k in range(depth)]

    def grow(self):
        self.blocks.append(Block(self.width))
        self.scales.append(0.5)

    def forward(self, x):
        for block, scale in zip(self.blocks, self.scales):
            x = x + scale * block(x)
        return x, len(self.blocks)


torch.manual_seed(5)
tower = Tower(2).eval()
sums = {}
with torch.no_grad():
    x = torch.randn(3, 6)
    for step in range(60):
        if step in (25, 45):
            tower.grow()
        y, depth = tower(x * (1 + step % 4))
        sums[depth] = sums.get(depth, 0.0) + y.abs().mean().item()
print({depth: f"{value:.4f}" for depth, value in sums.items()})

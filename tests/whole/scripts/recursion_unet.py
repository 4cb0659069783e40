# A U-Net built recursively: each level's forward calls the next one's, with skip connections.
# expect: compiled>=0.75, traces>=1
import torch
import torch.nn.functional as F
from torch import nn


class Level(nn.Module):
    def __init__(self, depth, channels):
        super().__init__()
        self.down = nn.Conv2d(channels, channels * 2, 3, padding=1)
        self.inner = Level(depth - 1, channels * 2) if depth > 1 else None
        self.up = nn.Conv2d(channels * 2, channels, 1)

    def forward(self, x):
        y = F.relu(self.down(F.avg_pool2d(x, 2)))
        if self.inner is not None:
            y = self.inner(y)
        return x + F.interpolate(self.up(y), scale_factor=2)


torch.manual_seed(37)
net = Level(3, 2)
image = torch.rand(1, 2, 16, 16)
noise = torch.randn(1, 2, 16, 16) * 0.1
errors = []
with torch.no_grad():
    x = image + noise
    for step in range(30):
        prediction = net(x)
        errors.append((prediction - x).abs().mean().item())
        x = x - 0.05 * (prediction - image)
print([f"{e:.4f}" for e in errors[::6]], f"{x.mean().item():.5f}", sum(1 for m in net.modules() if isinstance(m, Level)))

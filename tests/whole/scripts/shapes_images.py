# Images of different heights and widths through convolutions, adaptive pooling and a resize to a common size.
# expect: compiled>=0.75, traces>=1
import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(120)
net = nn.Sequential(nn.Conv2d(3, 4, 3, stride=2, padding=1), nn.ReLU(),
                    nn.Conv2d(4, 6, 3, padding=1), nn.AdaptiveAvgPool2d(2), nn.Flatten(), nn.Linear(24, 3))
sizes = [(8, 8), (8, 12), (11, 9), (16, 8), (5, 7)]
totals = torch.zeros(3)
thumbnails = []
with torch.no_grad():
    for step in range(80):
        height, width = sizes[step * 3 % 5]
        image = torch.rand(1, 3, height, width)
        totals += net(image)[0]
        thumbnails.append(F.interpolate(image, size=(4, 4), mode="bilinear", align_corners=False)[0, 0])
print([f"{v:.4f}" for v in totals.tolist()], tuple(torch.stack(thumbnails).shape), f"{torch.stack(thumbnails).sum().item():.3f}")

# Shapes from Python numbers: windows that grow, random crops, arange and zeros with computed sizes.
# expect: compiled>=0.18, traces>=1
import random

import torch

random.seed(6)
torch.manual_seed(126)
image = torch.rand(12, 12)
shapes, total = set(), 0.0
for step in range(60):
    side = 3 + step // 20
    top, left = random.randint(0, 12 - side), random.randint(0, 12 - side)
    crop = image[top:top + side, left:left + side]
    ramp = torch.arange(side, dtype=torch.float32) / max(side - 1, 1)
    window = torch.outer(ramp, 1 - ramp)
    padded = torch.zeros(side + 1, side + 1)
    padded[:side, 1:] = crop * window
    total += padded.cumsum(0)[-1].max().item()
    shapes.add(tuple(padded.shape))
print(sorted(shapes), f"{total:.4f}")

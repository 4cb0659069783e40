# Rejection sampling: draws until one is accepted, so the number of random calls depends on the values.
# expect: compiled>=0.55, traces>=1
import math

import torch

generator = torch.Generator().manual_seed(79)
accepted, draws = [], 0
while len(accepted) < 40:
    x = torch.rand(1, generator=generator) * 6 - 3
    u = torch.rand(1, generator=generator)
    draws += 1
    if u.item() < math.exp(-0.5 * float(x) ** 2):
        accepted.append(x)
samples = torch.cat(accepted)
print(draws, f"{samples.mean().item():.4f} {samples.std().item():.4f}", f"{torch.rand(1, generator=generator).item():.5f}")

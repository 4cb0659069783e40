# Five augmentations chosen at random in each iteration, some of which change the layout or the dtype.
# expect: compiled>=0.75, traces>=1
import random

import torch


def augment(kind, image):
    if kind == 0:
        return image.flip(-1)
    if kind == 1:
        return image.transpose(0, 1)
    if kind == 2:
        return (image * 255).to(torch.uint8).float() / 255
    elif kind == 3:
        return image.double().mul(0.9).float()
    return image.clamp(0.2, 0.8)


random.seed(4)
torch.manual_seed(96)
kernel = torch.rand(4, 4)
counts, energy = [0] * 5, 0.0
for step in range(120):
    kind = random.randrange(5)
    counts[kind] += 1
    image = augment(kind, torch.rand(4, 4))
    energy += (image * kernel).sum().item()
print(counts, f"{energy:.3f}")

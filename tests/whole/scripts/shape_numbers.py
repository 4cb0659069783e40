# Numbers computed from shapes: padding for a stride, patch counts, head sizes, receptive fields; math and divmod.
# expect: compiled>=0.8, traces>=1
import math

import torch
import torch.nn.functional as F


def patches(image, size):
    batch, channels, height, width = image.shape
    extra = [(-side) % size for side in (height, width)]
    image = F.pad(image, (0, extra[1], 0, extra[0]))
    rows, columns = (image.shape[-2] // size, image.shape[-1] // size)
    blocks = image.reshape(batch, channels, rows, size, columns, size).permute(0, 2, 4, 1, 3, 5)
    return blocks.reshape(batch, rows * columns, channels * size ** 2), divmod(height * width, size * size)


torch.manual_seed(49)
image = torch.rand(2, 3, 7, 10)
weight = torch.randn(27, 8) / math.sqrt(27)
total, rest = 0.0, 0
for step in range(45):
    tokens, (whole, remainder) = patches(image, 3)
    heads = math.gcd(tokens.size(-1), 9)
    y = (tokens @ weight).mean(1) / math.log2(tokens.size(1)) * heads
    rest += remainder + whole
    total += y.abs().max().item() / y.numel() ** 0.5
    image = image.roll(1, -1) * 0.99
print(tuple(tokens.shape), heads, rest, f"{total:.4f}", tokens.numel() * tokens.element_size())

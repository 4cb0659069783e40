# A convolutional network over images of many sizes: convolution, batch norm, pooling, padding, interpolation.
# expect: compiled>=0.2, open_sizes>=1
import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(3)
net = nn.ModuleDict({"a": nn.Conv2d(3, 6, 3, padding=1), "n": nn.BatchNorm2d(6), "b": nn.Conv2d(6, 8, 3, stride=2), "head": nn.Linear(8, 4)}).eval()


def look(image):
    x = F.max_pool2d(F.relu(net["n"](net["a"](image))), 2)
    height, width = x.shape[-2:]
    x = F.pad(x, (0, width % 2, 0, height % 2))
    x = F.relu(net["b"](x))
    small = F.adaptive_avg_pool2d(x, 1).flatten(1)
    wide = F.interpolate(x, size=(height, width), mode="nearest")
    return net["head"](small), wide.mean(dim=(1, 2, 3)), (height, width)


sizes = [(16, 16)] * 15 + [(12 + i % 9, 12 + (3 * i) % 13) for i in range(60)]
images = [torch.randn(2, 3, height, width) for height, width in sizes]
rows = []
with torch.no_grad():
    for image in images:
        logits, level, size = look(image)
        rows.append((size, [round(v, 4) for v in logits.sum(0).tolist()], round(level.sum().item(), 4)))
print(rows)

# What C++ code computes from the offset of a view that looks elsewhere in each iteration.
# expect: traces>=2, compiled>=0.5
import torch

torch.manual_seed(0)
image = torch.zeros(40, 3, 3)
big = torch.zeros(40, 5, 5)
tall = torch.zeros(20, 7, 3)
for i in range(40):
    image[i].fill_diagonal_(1.0)
print(image.sum((1, 2)).tolist())
for i in range(40):
    image[(i * 7) % 40].fill_diagonal_(float(i))
    big[i, :3, 1:4].fill_diagonal_(2.0)
print(image.sum((1, 2)).tolist(), big.sum((1, 2)).tolist(), big.nonzero().sum(0).tolist())
for i in range(40):
    tall[i % 20].fill_diagonal_(0.5 * i, wrap=True)
    tall.select(0, (i * 3) % 20)[2:].fill_diagonal_(1.5)
print(tall.sum((1, 2)).tolist())
for i in range(30):
    image[i].as_strided((3,), (4,), 27).add_(0.25)
    image[i].diagonal().mul_(0.5)
print(image.sum((1, 2)).tolist())

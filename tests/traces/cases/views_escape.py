# Views of loop tensors are kept: later in-place changes show in what was kept.
import torch

torch.manual_seed(0)
kept, x = [], torch.zeros(3, 4)
for i in range(40):
    y = x + i * 0.1
    if i % 8 == 0:
        kept.append((y, y[1], y.t()))
    y[1, 2] = -1.0
    y.mul_(0.5)
    x = y.clone() if i % 2 else y
for y, row, t in kept:
    print(f"{y.sum().item():.5f} {row.sum().item():.5f} {t[2].sum().item():.5f}", row._base is y, t.stride())
kept[-1][0].fill_(7)
print(kept[-1][1].tolist())

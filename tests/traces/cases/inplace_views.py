# In-place operations through views: the base, other views and version counters follow.
import torch

torch.manual_seed(0)
base = torch.zeros(4, 6)
row, column, flat = base[1], base[:, 2], base.view(-1)
for i in range(50):
    row.add_(0.1)
    column.mul_(0.9).add_(0.01 * i)
    flat[::5] -= 0.05
    base[2:, 3:] = base[:2, :3] * 0.5
    base.t()[0].copy_(torch.arange(4.0) * 0.1)
    if i % 10 == 0:
        print(i, f"{base.sum().item():.5f} {row.sum().item():.5f} {column.sum().item():.5f}")
print(base._version, row._version, row._base is base, flat.data_ptr() == base.data_ptr())
print([f"{v:.5f}" for v in base.flatten().tolist()])

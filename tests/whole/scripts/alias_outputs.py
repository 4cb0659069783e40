# Outputs that alias inputs: contiguous, reshape, to, expand and chunk return views or the tensor itself, depending on layout.
# expect: compiled>=0.7, traces>=1
import torch


def prepare(x, dtype):
    return x.contiguous().to(dtype).reshape(-1, 2)


torch.manual_seed(132)
shared = {"plain": 0, "transposed": 0, "double": 0}
base = torch.randn(4, 4)
for step in range(60):
    kind = ("plain", "transposed", "double")[step % 3]
    source = base.t() if kind == "transposed" else base
    y = prepare(source, torch.float64 if kind == "double" else torch.float32)
    shared[kind] += y.data_ptr() == base.data_ptr()
    y[0] += 0.5
    left, right = source.chunk(2, dim=1)
    left.mul_(0.9)
    row = base[1].expand(3, 4)
    base = base + 0.01 * row.sum(0)
print(shared, row.stride(), f"{base.sum().item():.4f}", f"{right.sum().item():.4f}")

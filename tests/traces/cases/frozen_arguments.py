# What torch is given beside tensors and numbers (slices, dtypes, tuples of them, names) may be another each time, also where a side trace begins.
# expect: traces>=2
import torch

torch.manual_seed(0)
x = torch.arange(48.0).view(12, 4)
dtypes = [torch.float32, torch.float64, torch.int32]
out = []
for step in range(60):
    rows = slice(4 * (step % 3), 4 * (step % 3) + 4)
    key = (rows, slice(None, 1 + step % 2))
    dtype = dtypes[step // 20]
    name = ("tanh", "none")[step % 2]
    y = x[rows].to(dtype) * 2 - x[key].abs().sum(1, keepdim=True)
    z = torch.nn.functional.gelu(y.float(), approximate=name)
    out.append((round(y.sum().item(), 3), str(y.dtype), round(z.sum().item(), 3), tuple(x[key].shape)))
print(out)

table = torch.randn(30, 6)
columns = []
for i in range(40):
    n = 5 + i % 2
    columns.append(round((table[:n] @ table[i % 20].unsqueeze(1)).sum().item(), 4))  # a view of a view whose place changes
print(columns)

# Lists of nothing but None at first, of a tensor later: an optimizer that has its buffers from its first step on.
grouped = torch.utils._foreach_utils._group_tensors_by_device_and_dtype
weight = torch.ones(3)
lists = [[None] if i < 30 or i % 4 == 3 else [torch.full((3,), float(i))] for i in range(60)]
steps = []
for i, buffers in enumerate(lists):
    for (weights, buffers), _ in grouped([[weight], buffers]).values():
        steps.append(round((weights[0] * i).sum().item() + (0.5 if buffers[0] is None else buffers[0].sum().item()), 3))
print(steps)

# Inputs that are transposed, strided or overlap, in changing sizes; writes into views of them.
# expect: traces>=1
import torch

torch.manual_seed(6)


def change(x, out):
    y = x.transpose(0, 1) * 2
    out[: y.shape[1]] += y.t()[: out.shape[0], : out.shape[1]]
    half = out[:, : out.shape[1] // 2]
    half.mul_(0.5)
    return y.contiguous().view(-1)[: len(x)], half


pool = torch.randn(40, 30)
seen = []
for i in range(90):
    n = 12 if i < 15 else 4 + (3 * i) % 14
    layout = i % 3 if i >= 45 else 0
    x = (pool[:n, :10], pool.t()[:n, :10], pool[:n, :20:2])[layout]
    out = pool[10 : 10 + n, 5:15]
    flat, half = change(x, out)
    seen.append((n, round(flat.sum().item(), 3), round(half.sum().item(), 3), tuple(half.shape), x.stride()))
print(seen, round(pool.sum().item(), 2))

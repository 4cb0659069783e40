# What programs do with sizes: shapes compared, concatenated, sliced, unpacked, printed, given to functions that make tensors.
# expect: made_for_sizes>=10
import torch
import torch.nn.functional as F

torch.manual_seed(5)


def kinds(x):
    rows, *rest = x.shape
    text = f"{x.shape} {rows:>3}"
    a = torch.zeros(x.shape) + torch.ones(*x.shape) + x.new_full((rows, 4), 2.0)
    b = torch.arange(rows).unsqueeze(1).expand(-1, 4) * 1.0
    c = x.reshape(-1, 2).sum(0) + x.flatten().view(rows * 2, 2).mean(0)
    d = torch.stack(x.split(rows // 2 + 1)[:1]).squeeze(0)
    e = torch.einsum("ij,kj->ik", x, x).diagonal()
    f = F.pad(x, (1, 1)).roll(1, 0).cumsum(0)[-1]
    g = x.t().contiguous().is_contiguous(), x.t().is_contiguous(), x.nelement(), x.dim()
    h = x[:, : x.size(1) // 2].clone().add_(1.0)
    i = torch.where(x > 0, x, torch.zeros_like(x)).repeat(2, 1)
    same = (x.shape == a.shape, x.shape != d.shape, x.shape[:1] + (4,) == x.shape, isinstance(x.shape, torch.Size), tuple(x.shape) == (rows, *rest))
    numbers = rows // 3, rows % 3, -rows, rows / 2, min(rows, 30), max(rows, 2), int(rows), float(rows), bool(rows), (rows + 2) * 3
    total = sum(t.sum() for t in (a, b, c, d, e, f, h, i))
    return text, g, same, numbers, total, (rows,) + (1,) * (x.dim() - 1), [*x.shape, 7], {"rows": rows}[("rows")]


out = []
for x in [torch.randn(n, 4) for n in [6] * 15 + [3 + (7 * i) % 19 for i in range(57)]]:
    *facts, total, shape, listed, again = kinds(x)
    out.append((facts, round(total.item(), 3), shape, listed, again))
print(out)

# Sizes that Python computes as products of numbers, given to torch together: what each is made of changes, and all of them fit each other.
# expect: compiled>=0.6, open_sizes>=1
import torch


def table(n):
    rows, columns = 4 * n, 6
    x = torch.arange(rows * columns, dtype=torch.float32)
    return (x.view(rows, columns) * 2 + 1).view(rows * columns)


def padded(n):
    wide = n * 2
    return torch.zeros(n, wide).add(1).view(n * wide)


out = []
for i in range(60):
    n = 3 + (i * 7) % 37
    out.append((table(n).sum().item(), padded(n).sum().item()))
print(out)

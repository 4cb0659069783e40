# Nested comprehensions build a grid of pairwise scores and a table of n-gram windows.
# expect: compiled>=0.65, traces>=1
import torch

torch.manual_seed(24)
points = [torch.randn(3) for _ in range(4)]
total = torch.zeros(4, 4)
counts = 0
for step in range(40):
    grid = [[torch.dot(a, b) if i <= j else torch.tensor(0.0) for j, b in enumerate(points)] for i, a in enumerate(points)]
    matrix = torch.stack([torch.stack(row) for row in grid])
    windows = [tuple(k + d for d in range(n)) for n in (1, 2, 3) for k in range(4 - n + 1)]
    flat = [points[k][0] for window in windows if len(window) > 1 for k in window]
    counts += len(flat)
    total += matrix * sum(flat)
    points = [p * 0.98 + 0.01 * (matrix[k].sum() > 0) for k, p in enumerate(points)]
print(counts, windows[-1], [f"{v:.4f}" for v in total.sum(1).tolist()])

# Tuples as state: swaps, comparison, nested unpacking, concatenation, as keys, and tuples that functions return.
# expect: compiled>=0.75, traces>=1
import torch


def split(x):
    half = x.size(0) // 2
    return (x[:half], x[half:]), (half, x.size(0) - half)


torch.manual_seed(43)
x, y = torch.randn(4), torch.randn(4)
best = (float("-inf"), -1)
memo = {}
for step in range(50):
    x, y = y, (x + 0.5 * y.roll(1)) * 0.8
    (left, right), sizes = split(x)
    key = sizes + (step % 3,)
    memo[key] = memo.get(key, 0) + 1
    candidate = (round((left.sum() - right.sum()).item(), 4), step)
    best = max(best, candidate)
    if candidate > (0.5, 0) and sizes == (2, 2):
        x = torch.cat((right, left))
    if step % 10 == 0:
        x = x + 1
print(best[1], f"{best[0]:.3f}", memo, (1, 2) < (1, 3), f"{(x + y).sum().item():.4f}")

# Sizes that come once each: a trace with open sizes serves them, also where numbers that Python computes from sizes become arguments, with
# remainders, and where sizes that were equal no longer are.
# expect: compiled>=0.3, open_sizes>=1
import torch
import torch.nn.functional as F


def step(x, y, w):
    n, k = x.shape
    h = torch.relu(x @ w)
    heads = h.view(n, 2, -1).transpose(0, 1)
    scores = (heads @ heads.transpose(1, 2)) / (n ** 0.5)
    padded = F.pad(h, (0, 0, 0, n % 3))
    pooled = padded[: (n // 3) * 3].reshape(n // 3, 3, -1).mean(1)
    z = x + y if x.shape == y.shape else x * 2
    return scores.softmax(-1).sum(), pooled.sum(), padded.shape[0], z.mean(), torch.arange(n).sum(), torch.cat([h, torch.ones(n - 2, h.shape[1])]).mean()


def main():
    torch.manual_seed(0)
    w = torch.rand(6, 8)
    rows = []
    for i in range(260):
        n = 30 if i < 10 else 5 + i
        x = torch.rand(n, 6)
        y = torch.rand(n if i % 20 else n + 1, 6)
        rows.append([float(v) for v in step(x, y, w)])
    print([[round(v, 3) for v in row] for row in rows[::13]], round(sum(map(sum, rows)), 1))


main()

# itertools.product, combinations and permutations: a grid search with scores for each setting.
# expect: compiled>=0.5, traces>=1
from itertools import combinations, permutations, product

import torch

torch.manual_seed(90)
x, target = torch.randn(12, 4), torch.randn(12)
scores = {}
for rate, decay, steps in product((0.01, 0.05), (0.0, 0.1), (3, 5)):
    w = torch.zeros(4)
    for _ in range(steps):
        w = w - rate * (x.t() @ (x @ w - target) / len(x) + decay * w)
    scores[rate, decay, steps] = (x @ w - target).pow(2).mean().item()
best = min(scores, key=scores.get)
pairs = {}
for a, b in combinations(range(4), 2):
    pairs[a, b] = torch.corrcoef(torch.stack([x[:, a], x[:, b]]))[0, 1].item()
products = [(x[:, i] * x[:, j].cumsum(0) * x[:, k].flip(0)).sum().item() for i, j, k in permutations(range(4), 3)]
print(best, f"{scores[best]:.4f}", len(scores), max(pairs, key=pairs.get), f"{pairs[0, 1]:.4f}", f"{max(products):.4f}")

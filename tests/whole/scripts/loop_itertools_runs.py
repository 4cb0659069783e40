# itertools.accumulate, pairwise, zip_longest, takewhile, dropwhile and starmap over sequences of tensors.
# expect: compiled>=0.55, traces>=1
import operator
from itertools import accumulate, dropwhile, pairwise, starmap, takewhile, zip_longest

import torch

torch.manual_seed(92)
x = torch.randn(6, 3)
total, counts = torch.zeros(3), [0, 0]
for step in range(40):
    rows = list(x)
    running = list(accumulate(rows, lambda a, b: 0.6 * a + b))
    steps = [b - a for a, b in pairwise(running)]
    products = list(starmap(operator.mul, zip_longest(running, steps, fillvalue=torch.ones(3))))
    early = list(takewhile(lambda t: t.sum() < 1, products))
    late = list(dropwhile(lambda t: t[0] > 0, products))
    counts[0] += len(early)
    counts[1] += len(late)
    total = total * 0.9 + sum(products, torch.zeros(3)) * 0.1
    x = x.roll(1, 0) * 0.95 + 0.02 * total
print(counts, [f"{v:.4f}" for v in total.tolist()])

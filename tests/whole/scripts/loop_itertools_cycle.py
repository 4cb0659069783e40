# itertools.cycle, islice, chain and zip over data sets of different lengths, as mixed training does.
# expect: compiled>=0.75, traces>=1
from itertools import chain, cycle, islice, repeat

import torch
from torch import nn

torch.manual_seed(91)
labelled = [(torch.randn(4, 5), torch.randint(0, 3, (4,))) for _ in range(3)]
unlabelled = [torch.randn(6, 5) for _ in range(5)]
model = nn.Linear(5, 3)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
totals = [0.0, 0.0]
for (x, y), u, weight in islice(zip(cycle(labelled), cycle(unlabelled), chain(repeat(0.0, 10), repeat(0.3))), 50):
    optimizer.zero_grad()
    supervised = nn.functional.cross_entropy(model(x), y)
    p = model(u).softmax(-1)
    entropy = -(p * p.log()).sum(-1).mean()
    (supervised + weight * entropy).backward()
    optimizer.step()
    totals[0] += supervised.item()
    totals[1] += entropy.item() * weight
print([f"{t:.4f}" for t in totals], f"{model.weight.abs().sum().item():.4f}")

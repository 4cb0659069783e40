# .tolist() of predictions drives Python code: a confusion table, runs of equal labels, and the worst samples.
# expect: compiled>=0.55, traces>=1
import itertools

import torch
from torch import nn

torch.manual_seed(72)
model = nn.Linear(3, 4)
table = [[0] * 4 for _ in range(4)]
longest, worst = 0, {}
with torch.no_grad():
    for step in range(40):
        x = torch.randn(10, 3)
        truth = (x.sum(1) > 0).long() + 2 * (x[:, 0] > 0).long()
        scores = model(x)
        predicted = scores.argmax(1).tolist()
        for t, p in zip(truth.tolist(), predicted):
            table[t][p] += 1
        longest = max(longest, *(len(list(run)) for _, run in itertools.groupby(predicted)))
        margins = (scores.max(1).values - scores.mean(1)).tolist()
        worst[predicted[margins.index(min(margins))]] = round(min(margins), 3)
        model.bias += 0.01 * torch.tensor([float(predicted.count(k)) for k in range(4)]).neg()
print(table, longest, sorted(worst.items()))

# data.split leaves a smaller last batch; training averages the loss by rows, and accuracy needs each batch's own size.
# expect: compiled>=0.6, traces>=1
import torch
from torch import nn

torch.manual_seed(121)
x = torch.randn(45, 4)
y = (x[:, 0] > 0).long()
model = nn.Linear(4, 2)
optimizer = torch.optim.SGD(model.parameters(), lr=0.2)
sizes = []
for epoch in range(8):
    right, total = 0, 0.0
    for rows, labels in zip(x.split(10), y.split(10)):
        optimizer.zero_grad()
        scores = model(rows)
        loss = nn.functional.cross_entropy(scores, labels)
        loss.backward()
        optimizer.step()
        right += (scores.argmax(1) == labels).sum().item()
        total += loss.item() * len(rows)
        sizes.append(len(rows))
    order = torch.randperm(45)
    x, y = x[order], y[order]
print(sizes[:5], right, f"{total / 45:.5f}")

# Batches come from a generator function with a try/finally, which the loop leaves early once.
# expect: compiled>=0.65
import torch
from torch import nn


def batches(data, size):
    try:
        for start in range(0, len(data) - size + 1, size):
            yield start // size, data[start:start + size]
    finally:
        print("closed at", start)


torch.manual_seed(0)
data = torch.randn(60, 4)
model = nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
for epoch in range(5):
    for index, x in batches(data, 6):
        optimizer.zero_grad()
        loss = (model(x) - x.sum(1, keepdim=True)).pow(2).mean()
        loss.backward()
        optimizer.step()
        if epoch == 3 and index == 4:
            break
    print(epoch, index, f"{loss.item():.6f}")

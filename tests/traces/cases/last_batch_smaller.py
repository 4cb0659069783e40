# The last batch of each epoch is smaller than the others.
# expect: compiled>=0.11
import torch
from torch import nn

torch.manual_seed(0)
data, target = torch.randn(50, 6), torch.randint(3, (50,))
model = nn.Sequential(nn.Linear(6, 10), nn.ReLU(), nn.Linear(10, 3))
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
for epoch in range(12):
    total, count = 0.0, 0
    for start in range(0, 50, 16):
        x, y = data[start:start + 16], target[start:start + 16]
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        total += loss.item() * len(x)
        count += len(x)
    print(epoch, f"{total / count:.6f}", count)

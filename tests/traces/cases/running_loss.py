# A running loss through .item(), a counter and an accuracy count in the loop.
# expect: compiled>=0.05
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 4))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
data = [(torch.randn(16, 8), torch.randint(4, (16,))) for _ in range(6)]
running, correct, seen = 0.0, 0, 0
for epoch in range(12):
    for x, y in data:
        optimizer.zero_grad()
        out = model(x)
        loss = nn.functional.cross_entropy(out, y)
        loss.backward()
        optimizer.step()
        running += loss.item() * x.size(0)
        correct += (out.argmax(1) == y).sum().item()
        seen += x.size(0)
print(f"{running / seen:.6f}", correct, seen)

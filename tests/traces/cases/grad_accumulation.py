# Gradients are accumulated over four batches before each optimizer step.
# expect: compiled>=0.06
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(6, 8), nn.ReLU(), nn.Linear(8, 2))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.5)
batches = [(torch.randn(8, 6), torch.randint(2, (8,))) for _ in range(10)]
total = 0.0
for i in range(80):
    x, y = batches[i % 10]
    loss = nn.functional.cross_entropy(model(x), y) / 4
    loss.backward()
    total += loss.item()
    if (i + 1) % 4 == 0:
        optimizer.step()
        optimizer.zero_grad()
print(f"{total:.5f}", f"{model[0].weight.sum().item():.6f}", model[0].weight.grad)

# A training step of an MLP with plain SGD.
# expect: compiled>=0.9
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 4))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
criterion = nn.CrossEntropyLoss()
inputs, labels = torch.randn(32, 8), torch.randint(4, (32,))
for i in range(60):
    optimizer.zero_grad()
    loss = criterion(model(inputs), labels)
    loss.backward()
    optimizer.step()
print(f"{loss.item():.6f}")
for name, p in model.named_parameters():
    print(name, f"{p.sum().item():.6f} {p.grad.abs().sum().item():.6f}", p._version)

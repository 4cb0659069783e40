# clip_grad_norm_ and clip_grad_value_, with the norm printed.
# expect: compiled>=0.08
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 1))
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
x = torch.randn(16, 4) * 3
y = x.sum(1, keepdim=True) ** 2
for i in range(50):
    optimizer.zero_grad()
    loss = nn.functional.mse_loss(model(x), y)
    loss.backward()
    norm = nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    if i % 10 == 0:
        print(f"{norm.item():.5f} {loss.item():.5f}")
    if i > 30:
        nn.utils.clip_grad_value_(model.parameters(), 0.05)
    optimizer.step()
print(f"{model[0].weight.sum().item():.6f}")

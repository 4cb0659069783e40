# Training steps on batches of changing size: backward and optimizer are in the traces.
# expect: compiled>=0.6, open_sizes>=1
import torch
from torch import nn

torch.manual_seed(4)
model = nn.Sequential(nn.Linear(10, 16), nn.LayerNorm(16), nn.GELU(), nn.Dropout(0.1), nn.Linear(16, 3))
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
sizes = [8] * 15 + [2 + (5 * i) % 17 for i in range(60)]
batches = [(torch.randn(n, 10), torch.randint(0, 3, (n,))) for n in sizes]
losses = []
for x, y in batches:
    loss = nn.functional.cross_entropy(model(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    losses.append((len(x), round(loss.item(), 4)))
print(losses)
print([round(p.abs().sum().item(), 3) for p in model.parameters()], torch.rand(1).item())

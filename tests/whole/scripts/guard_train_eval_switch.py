# train() and eval() switch in each epoch: dropout and batch norm change what they do, running statistics move only in training.
# expect: compiled>=0.5, traces>=1
import torch
from torch import nn

torch.manual_seed(113)
net = nn.Sequential(nn.Linear(6, 10), nn.BatchNorm1d(10), nn.ReLU(), nn.Dropout(0.3), nn.Linear(10, 1))
optimizer = torch.optim.SGD(net.parameters(), lr=0.05)
x, held = torch.randn(24, 6), torch.randn(8, 6)
for epoch in range(4):
    net.train()
    for step in range(12):
        rows = slice(8 * (step % 3), 8 * (step % 3) + 8)
        optimizer.zero_grad()
        loss = (net(x[rows]) - x[rows, :1].abs()).pow(2).mean()
        loss.backward()
        optimizer.step()
    net.eval()
    with torch.no_grad():
        scores = [net(held + 0.1 * k).mean().item() for k in range(6)]
    print(epoch, f"{loss.item():.4f} {sum(scores):.4f} {net[1].running_mean.sum().item():.4f}", net[1].num_batches_tracked.item())

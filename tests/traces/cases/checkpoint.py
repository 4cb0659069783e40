# torch.utils.checkpoint runs the forward again in backward, with the same random numbers.
import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

torch.manual_seed(0)
block = nn.Sequential(nn.Linear(6, 6), nn.Tanh(), nn.Dropout(0.2), nn.Linear(6, 6))
optimizer = torch.optim.SGD(block.parameters(), lr=0.1)
x = torch.randn(4, 6)
for i in range(30):
    optimizer.zero_grad()
    loss = checkpoint(block, x, use_reentrant=False).pow(2).mean()
    loss.backward()
    optimizer.step()
print(f"{loss.item():.6f}", f"{torch.rand(1).item():.6f}")

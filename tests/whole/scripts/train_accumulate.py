# Gradients of four batches, then a step: whether a parameter has a gradient is asked where the loop begins, not behind the forward pass.
# expect: compiled>=0.7, traces>=3
import torch
import torch.nn as nn
import torch.nn.functional as F


def main():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(16, 32), nn.GELU(), nn.Linear(32, 4))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    x, y = torch.randn(80, 6, 16), torch.arange(6) % 4
    for i in range(80):
        loss = F.cross_entropy(model(x[i]), y) / 4
        loss.backward()
        if (i + 1) % 4 == 0:
            optimizer.step()
            optimizer.zero_grad()
    print(f"{loss.item():.4f}", [p.grad for p in model.parameters()], f"{sum(p.sum().item() for p in model.parameters()):.3f}")


main()

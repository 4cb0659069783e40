# Losses are kept in a list with their graphs, and backward() runs for all of them later.
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(4, 5), nn.Tanh(), nn.Linear(5, 1))
xs = [torch.randn(3, 4) for _ in range(5)]
kept = []
for i in range(30):
    kept.append(model(xs[i % 5]).pow(2).mean())
    if len(kept) == 6:
        torch.stack(kept).sum().backward()
        kept = []
        with torch.no_grad():
            for p in model.parameters():
                p -= 0.05 * p.grad
                p.grad = None
last = [model(x).sum() for x in xs]
print([f"{l.item():.6f}" for l in last], last[0].requires_grad, type(last[0].grad_fn).__name__)
last[2].backward()
last[4].backward()
print([f"{v:.6f}" for v in model[0].bias.grad.tolist()])

# requires_grad of inputs and parameters changes from step to step: the loss is differentiable only at times.
# expect: compiled>=0.45, traces>=1
import torch
from torch import nn

torch.manual_seed(116)
body, head = nn.Linear(4, 6), nn.Linear(6, 1)
x = torch.randn(8, 4)
kinds = {}
for step in range(80):
    body.requires_grad_(20 <= step < 60)
    head.weight.requires_grad = step % 4 != 3
    head.bias.requires_grad = step < 50
    inputs = x.detach().requires_grad_(step % 20 == 10)
    loss = (head(torch.tanh(body(inputs))) - 0.3).pow(2).mean()
    kind = ["none"]
    if loss.requires_grad:
        loss.backward()
        kind = [n for n, p in (("body", body.weight), ("head", head.weight), ("bias", head.bias), ("x", inputs)) if p.grad is not None]
    with torch.no_grad():
        for p in [*body.parameters(), *head.parameters()]:
            if p.grad is not None:
                p -= 0.1 * p.grad
                p.grad = None
    kinds["+".join(kind)] = kinds.get("+".join(kind), 0) + 1
print(kinds, f"{loss.item():.6f}")

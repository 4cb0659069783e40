# Who owns a gradient: .grad objects kept by the user stay what they were when the next step makes new ones.
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Linear(3, 2)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
x = torch.randn(4, 3)
kept = []
for i in range(40):
    optimizer.zero_grad()
    model(x).pow(2).mean().backward()
    if i % 10 == 0:
        kept.append(model.weight.grad)
    optimizer.step()
    if i == 35:
        before = model.weight.grad.clone()
        model(x).pow(2).mean().backward()
        print(torch.allclose(before, model.weight.grad), f"{model.weight.grad.sum().item():.6f}")
print([f"{g.sum().item():.6f}" for g in kept], len({id(g) for g in kept}))

# A graph that is needed at an exit, built of fused operations with numbers that change.
# expect: compiled>=0.67, traces>=1
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Linear(4, 3)
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
x, y = torch.randn(16, 4), torch.randn(16, 3)
kept = []
for i in range(60):
    scale = 1.0 + i * 0.01
    optimizer.zero_grad()
    hidden = torch.tanh(model(x) * scale + i * 0.001)
    loss = (hidden - y).pow(2).mean() / (2.0 + i)
    if i % 9 == 8:  # the graph is used otherwise, and outlives the iteration
        gradient, = torch.autograd.grad(loss, model.weight, retain_graph=True)
        print(i, f"{gradient.abs().sum().item():.6f}", loss.grad_fn.name(), hidden.requires_grad)
        kept.append(loss)
    loss.backward(retain_graph=i % 9 == 8)
    optimizer.step()
print(f"{loss.item():.7f} {model.weight.sum().item():.6f}")
for loss in kept:
    optimizer.zero_grad()
    loss.backward()
    print(f"{model.weight.grad.abs().sum().item():.6f}")

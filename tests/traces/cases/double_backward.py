# Gradients of gradients, retain_graph and create_graph in the loop.
import torch

torch.manual_seed(0)
x = torch.randn(4, requires_grad=True)
for i in range(30):
    y = (torch.sin(x) * x).sum()
    (g,) = torch.autograd.grad(y, x, create_graph=True)
    penalty = g.pow(2).sum() + y
    penalty.backward(retain_graph=i % 2 == 0)
    if i % 2 == 0:
        penalty.backward()
    with torch.no_grad():
        x -= 0.01 * x.grad
    x.grad = None
print(f"{penalty.item():.6f}", [f"{v:.6f}" for v in x.tolist()])

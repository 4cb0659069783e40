# The user reads gradients, scales them, and replaces some.
# expect: compiled>=0.8
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Linear(4, 3)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
x, y = torch.randn(8, 4), torch.randn(8, 3)
norms = []
for i in range(50):
    optimizer.zero_grad()
    nn.functional.mse_loss(model(x), y).backward()
    model.weight.grad *= 0.5
    model.bias.grad = torch.sign(model.bias.grad) * 0.01
    norms.append(model.weight.grad.norm().item())
    if i % 20 == 10:
        model.bias.grad = None
    optimizer.step()
print(" ".join(f"{n:.5g}" for n in norms[::5]), [f"{v:.6f}" for v in model.bias.tolist()], model.bias.grad is None)

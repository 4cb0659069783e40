# zero_grad(set_to_none=False): gradients stay the same tensor objects and are zeroed in place.
# expect: compiled>=0.85
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Linear(4, 2)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
x, y = torch.randn(8, 4), torch.randn(8, 2)
kept = None
for i in range(50):
    optimizer.zero_grad(set_to_none=False)
    loss = nn.functional.mse_loss(model(x), y)
    loss.backward()
    optimizer.step()
    if i == 0:
        kept = model.weight.grad
print(kept is model.weight.grad, f"{kept.sum().item():.6f}", kept._version, f"{loss.item():.6f}")

# An optimizer step written with torch._foreach operations over all parameters at once, as fused optimizers do.
import torch
from torch import nn

torch.manual_seed(163)
model = nn.Sequential(nn.Linear(5, 7), nn.SiLU(), nn.Linear(7, 3))
parameters = list(model.parameters())
moments = [torch.zeros_like(p) for p in parameters]
x, y = torch.randn(9, 5), torch.arange(9) % 3
for step in range(50):
    loss = nn.functional.cross_entropy(model(x), y)
    grads = list(torch.autograd.grad(loss, parameters))
    with torch.no_grad():
        norm = torch.stack(torch._foreach_norm(grads)).norm()
        torch._foreach_mul_(grads, min(1.0, 1.0 / (norm.item() + 1e-6)))
        torch._foreach_mul_(moments, 0.9)
        torch._foreach_add_(moments, grads, alpha=0.1)
        torch._foreach_sub_(parameters, torch._foreach_mul(moments, 0.5))
print(f"{loss.item():.5f} {norm.item():.5f}", f"{sum(p.sum().item() for p in parameters):.4f}")

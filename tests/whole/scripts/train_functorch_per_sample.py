# Per-sample gradients by vmap of grad, clipped for each sample and averaged with noise, as private training does.
# expect: traces>=1
import torch
from torch.func import functional_call, grad, vmap
from torch import nn

torch.manual_seed(170)
model = nn.Linear(3, 1)


def sample_loss(weights, x, y):
    return (functional_call(model, weights, (x.unsqueeze(0),)).squeeze() - y).pow(2)


per_sample = vmap(grad(sample_loss), in_dims=(None, 0, 0))
x = torch.randn(8, 3)
y = x.sum(1)
norms = []
for step in range(25):
    weights = {name: p.detach() for name, p in model.named_parameters()}
    grads = per_sample(weights, x, y)
    size = torch.stack([g.flatten(1).norm(dim=1) for g in grads.values()]).norm(dim=0)
    factor = (2.0 / (size + 1e-6)).clamp(max=1.0)
    norms.append(size.mean().item())
    with torch.no_grad():
        for name, p in model.named_parameters():
            clipped = grads[name] * factor.view(-1, *[1] * p.dim())
            p -= 0.2 * (clipped.mean(0) + 0.001 * torch.randn_like(p))
print([f"{n:.4f}" for n in norms[::5]], f"{model.weight.sum().item():.3f}")

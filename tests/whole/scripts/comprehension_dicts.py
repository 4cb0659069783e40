# Dict and set comprehensions over named parameters: gradients by name, groups by shape, names that changed.
# expect: compiled>=0.1, traces>=1
import torch
from torch import nn

torch.manual_seed(23)
model = nn.ModuleDict({"a": nn.Linear(3, 4), "b": nn.Linear(4, 4), "c": nn.Linear(4, 1)})
x = torch.randn(9, 3)
shapes = {tuple(p.shape) for p in model.parameters()}
by_rank = {rank: [n for n, p in model.named_parameters() if p.dim() == rank] for rank in (1, 2)}
largest = {}
for step in range(30):
    hidden = x
    for layer in model.values():
        hidden = torch.tanh(layer(hidden))
    loss = (hidden - 0.5).pow(2).mean()
    names = {name: parameter for name, parameter in model.named_parameters() if not name.startswith("b")}
    grads = dict(zip(names, torch.autograd.grad(loss, list(names.values()))))
    with torch.no_grad():
        for name, grad in grads.items():
            names[name] -= 0.5 * grad
    largest = {name: max(grad.abs().max().item(), largest.get(name, 0.0)) for name, grad in grads.items()}
print(sorted(shapes), by_rank)
print({name: f"{value:.4f}" for name, value in largest.items()}, f"{loss.item():.5f}")

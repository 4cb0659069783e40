# MAML-like training: an inner step keeps its graph by functional_call, and the outer loss goes back through it.
# expect: compiled>=0.05, traces>=1
import torch
from torch import nn
from torch.func import functional_call

torch.manual_seed(164)
model = nn.Sequential(nn.Linear(1, 6), nn.Tanh(), nn.Linear(6, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.02)
history = []
for step in range(30):
    phase = torch.rand(1) * 3
    support, query = torch.rand(5, 1) * 4, torch.rand(5, 1) * 4
    weights = dict(model.named_parameters())
    inner = nn.functional.mse_loss(functional_call(model, weights, (support,)), torch.sin(support + phase))
    grads = torch.autograd.grad(inner, list(weights.values()), create_graph=True)
    adapted = {name: w - 0.05 * g for (name, w), g in zip(weights.items(), grads)}
    outer = nn.functional.mse_loss(functional_call(model, adapted, (query,)), torch.sin(query + phase))
    optimizer.zero_grad()
    outer.backward()
    optimizer.step()
    history.append((inner.item(), outer.item()))
print([f"{a:.4f} {b:.4f}" for a, b in history[::6]])

# Full backward hooks and backward pre-hooks note gradient norms of each layer in training, and one scales a gradient.
# expect: traces>=1
import torch
from torch import nn

torch.manual_seed(2)
model = nn.Sequential(nn.Linear(6, 8), nn.Tanh(), nn.Linear(8, 8), nn.Tanh(), nn.Linear(8, 1))
norms = {}
order = []


def note(name):
    def hook(module, grad_input, grad_output):
        norms.setdefault(name, []).append(grad_output[0].norm().item())
        if len(order) < 6:
            order.append(name)
    return hook


for name, layer in model.named_children():
    if isinstance(layer, nn.Linear):
        layer.register_full_backward_hook(note(name))
model[2].register_full_backward_pre_hook(lambda module, grad_output: (grad_output[0] * 0.5,))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
x = torch.randn(16, 6)
y = x[:, :2].prod(1, keepdim=True)
for step in range(30):
    optimizer.zero_grad()
    loss = nn.functional.mse_loss(model(x), y)
    loss.backward()
    optimizer.step()
print(order, {name: (len(values), f"{sum(values):.4f}") for name, values in sorted(norms.items())})
print(f"{loss.item():.5f}")

# A leaf on the memory of a tensor that has a graph, as the mixed samples of a gradient penalty are: an exit before the gradient is asked for keeps the two apart.
# expect: traces>=0
import torch
from torch import nn

torch.manual_seed(0)
critic, maker = nn.Linear(4, 3), nn.Sequential(nn.Linear(3, 6), nn.Linear(6, 128), nn.Unflatten(1, (2, 4, 4, 4)))


def step(i):
    fake = maker(torch.randn(4, 3))
    mixed = fake.detach().requires_grad_()
    out = critic(mixed)
    grad, = torch.autograd.grad(out, mixed, out)
    if i % 3 != 1:
        pass
    return grad.sum().item(), fake.requires_grad, mixed.is_leaf


for i in range(16):
    total, *kinds = step(i)
    print(i, f"{total:.3f}", kinds)

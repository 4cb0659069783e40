# Operations in place that autograd records, on tensors that were there before the trace: a loop over modules with in-place activations is hot where the
# tensors' graphs began outside of it.
# expect: traces>=1
import torch
from torch import nn


def pass_through(layers, x):
    for layer in layers:
        x = layer(x)
    return x


def adversarial(activation, steps):
    torch.manual_seed(5)
    critic = nn.Sequential(nn.Conv2d(1, 4, 3), activation(), nn.Conv2d(4, 4, 3), activation(), nn.Flatten(), nn.Linear(16, 1))
    maker = nn.Sequential(nn.Linear(5, 36), activation(), nn.Unflatten(1, (1, 6, 6)))
    optimizers = [torch.optim.Adam(module.parameters(), lr=1e-2) for module in (critic, maker)]
    losses = []
    for step in range(steps):
        fake = pass_through(maker, torch.randn(4, 5))
        optimizers[0].zero_grad()
        loss = pass_through(critic, fake.detach()).sigmoid().mean() - pass_through(critic, torch.randn(4, 1, 6, 6)).sigmoid().mean()
        loss.backward()
        optimizers[0].step()
        optimizers[1].zero_grad()
        back = pass_through(critic, fake).pow(2).mean()
        back.backward()
        optimizers[1].step()
        losses.append((loss.item(), back.item()))
    return losses


def penalised(steps):
    torch.manual_seed(6)
    critic = nn.Sequential(nn.Linear(4, 8), nn.LeakyReLU(0.2, inplace=True), nn.Linear(8, 8), nn.LeakyReLU(0.2, inplace=True), nn.Linear(8, 1))
    optimizer = torch.optim.SGD(critic.parameters(), lr=0.05)
    losses = []
    for step in range(steps):
        x = torch.randn(6, 4, requires_grad=True)
        optimizer.zero_grad()
        grad, = torch.autograd.grad(critic(x).sum(), x, create_graph=True)
        loss = (grad.norm(2, dim=1) - 1).pow(2).mean()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


def written_views(steps):
    torch.manual_seed(7)
    weight, seen = torch.randn(4, requires_grad=True), []
    for step in range(steps):
        x = weight * 2
        for part in (x[:2], x[2:], x):  # of memory that has a graph
            part.mul_(1.5)
        seen.append((x.grad_fn.name(), x._version))
        x.sum().backward()
        seen.append(weight.grad.tolist())
        weight.grad = None
    return seen


for activation in (lambda: nn.LeakyReLU(0.2, inplace=True), lambda: nn.ELU(inplace=True), lambda: nn.Hardtanh(inplace=True), lambda: nn.Threshold(0.1, 0.0, inplace=True),
                   lambda: nn.SiLU(inplace=True), lambda: nn.CELU(inplace=True)):
    for loss, back in adversarial(activation, 16)[::3]:
        print(f"{loss:.5f} {back:.5f}", end=" ")
    print()
print(*[f"{loss:.5f}" for loss in penalised(30)])
print(written_views(20))

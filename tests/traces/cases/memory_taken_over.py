# The trace is left with a graph that uses what no graph computes (targets, masks, draws), and that lies where a result of the graph's own calls has been.
# expect: compiled>=0.2
import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(6)
first, second = nn.Linear(6, 6), nn.Linear(6, 6)
params = [*first.parameters(), *second.parameters()]
inputs = torch.randn(4, 8, 6)


def target(x):
    """Behind its last use in the graph, the hidden value's memory serves for the target."""
    y = first(x)
    z = second(torch.tanh(y))
    return (z - (y.detach() * 0.5 + 1)).square().mean()


def mask(x):
    y = first(x)
    z = F.leaky_relu(second(y), 0.2)
    keep = (y.detach() > 0).float()
    return (z.masked_fill(keep > 0, 0.25) + z * keep).square().mean()


def drawn(x):
    y = first(x)
    z = second(y.sigmoid())
    noise = torch.rand_like(y) * y.detach().abs()
    return F.gaussian_nll_loss(z, x, noise + 0.1)


def chained(x):
    y = first(x)
    for _ in range(3):
        y = torch.tanh(second(y)) + y.detach().mul(0.5).add(0.1)
    return y.square().mean()


def closure(x):
    """A second pass whose loss nobody goes back from, as an optimizer's closure has."""
    y = first(x)
    F.prelu(second(y), params[1][:1]).square().mean().backward()
    y = F.prelu(second(first(x)), params[1][:1])
    return F.gaussian_nll_loss(y, x, torch.rand_like(y) + 0.1)


def masked(x):
    y = F.prelu(first(x), params[1][:1])
    y = y.masked_fill(y < -0.2, -0.2)
    return F.gaussian_nll_loss(y, x, torch.rand_like(y) + 0.1)


def update():
    total = 0.0
    with torch.no_grad():
        for p in params:
            if p.grad is not None:
                p -= 0.02 * p.grad.clamp(-1, 1)
                total += float(p.grad.abs().sum())
                p.grad = None
    return total


for make in (target, mask, drawn, chained, closure, masked):
    total = 0.0
    for i in range(30):
        loss = make(inputs[i % 4])
        grads = torch.autograd.grad(loss, params, create_graph=True, allow_unused=True)
        if i % 7 == 4:
            print(end="")
        norm = sum(g.square().sum() for g in grads if g is not None)
        (loss + 0.01 * norm).backward()
        total += update()
    print(make.__name__, f"{total:.2f} {loss.item():.4f}")
    for i in range(40):  # a graph that only few iterations go back through
        loss = make(inputs[i % 4])
        total += loss.item()
        if i % 7 == 4:
            loss.backward()
            total += update()
    print(make.__name__, f"{total:.2f} {loss.item():.4f}")

# Memory of a graph is written where autograd does not look (no_grad, .data, inside of an operation), and an exit between forward and backward rebuilds the graph.
# expect: traces>=1
import torch
import torch.nn.functional as F

torch.manual_seed(0)


def similarity(x, w):
    return F.cosine_similarity(x * w, x + w)


def clamped(x, w):
    y = (x * w).clone()
    with torch.no_grad():
        y.clamp_(-0.5, 0.5)
    return y.exp()


def twice(x, w):
    y = x * w
    with torch.no_grad():
        y.mul_(2).add_(1)
    return y.sin() * w


def view_of_it(x, w):
    y = x * w + 1
    with torch.no_grad():
        y[0].mul_(2)
    return y.sin()


def as_data(x, w):
    y = x * w + 1
    y.data.mul_(0.5)
    return y.sin()


def between_uses(x, w):
    y = x.mul(w)
    z = y + 1
    with torch.no_grad():
        y.mul_(2)
    return z * y


def leaf(x, w):
    with torch.no_grad():
        w.mul_(0.9)
    return (x * w).sin()


for fn in (similarity, clamped, twice, view_of_it, as_data, between_uses, leaf):
    w = torch.nn.Parameter(torch.linspace(0.5, 1.5, 4))
    x = torch.randn(3, 4)
    seen = []
    for i in range(24):
        y = fn(x, w)
        if i % 3 == 2:
            seen.append(round(y.sum().item(), 4))
        w.grad = None
        y.sum().backward()
        seen.append(w.grad.sum().item())
    print(fn.__name__, [f"{number:.4f}" for number in seen])

# A tensor comes by a variable and is a constant of the trace, too, by coincidence at first: the object, a view of it, one with a gradient, one that is written.
# expect: compiled>=0.5, traces>=4
import torch

torch.manual_seed(3)
x = torch.randn(6, 4)
other = x + 1
layer = torch.nn.Linear(4, 4)


def added(a, step):
    return a + x


def of_a_view(a, step):
    return a.view(4, 6).sum(0) * x.sum()


def written(a, step):
    a.mul_(0.99)
    return a * 0.5 + x


def written_constant(a, step):
    x.mul_(0.99)
    return a * 0.5 + x


def parameter(a, step):
    w = layer.weight if a is x else other[:4]
    return (w @ layer.weight).relu() + layer.bias


def chosen(a, step, weight=None):
    return torch.nn.functional.linear(a, weight) @ layer.weight


def same(a, step):
    return a if a is x else a * 2


with torch.no_grad():
    for body in (added, of_a_view, written, written_constant, parameter, same):
        for first in (x, x.view(24).view(6, 4), x.detach()):
            total = 0.0
            for step, a in enumerate([first] * 20 + [other] * 20 + [first] * 3):
                total += body(a, step).sum().item()
            print(body.__name__, f"{total:.3f}")
total = 0.0
for step, weight in enumerate([layer.weight] * 20 + [torch.nn.Parameter(other[:4].clone())] * 20):
    loss = chosen(x, step, weight).pow(2).mean()
    loss.backward()
    total += loss.item()
    if step % 10 == 9:
        total += layer.weight.grad.sum().item() + (0 if weight.grad is None else weight.grad.sum().item())
        layer.weight.grad = weight.grad = None
print(f"{total:.2f}")

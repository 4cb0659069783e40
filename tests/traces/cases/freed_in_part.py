# Graphs of which a backward() frees a part: what is in front of the tensors that gradients are asked for lives on, and what a head shares with another is gone.
# expect: compiled>=0.5
import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(3)
trunk, head, other = nn.Linear(4, 6), nn.Linear(6, 3), nn.Linear(6, 2)
batches = torch.randn(5, 8, 4)
layers = (trunk, head, other)


def gradients():
    return [round(float(p.grad.abs().sum()), 4) if p.grad is not None else None for layer in layers for p in layer.parameters()]


def clear():
    for layer in layers:
        layer.zero_grad()




def middle(i):
    """The gradient of a tensor in the middle, and the rest of the way from there."""
    y = trunk(batches[i % 5])
    grad, = torch.autograd.grad(head(F.relu(y)).square().sum(), y)
    return [("rest", lambda: y.backward(grad)), ("again", lambda: y.sum().backward())]


def beside(i):
    """Two gradients, one behind the other: the nodes between them are gone, those behind are not."""
    x = batches[i % 5].clone().requires_grad_()
    y = torch.tanh(trunk(x))
    z = torch.sigmoid(head(y))
    inner, = torch.autograd.grad(z.sum(), y)
    outer, = torch.autograd.grad(y, x, inner)
    return [("z", lambda: z.sum().backward()), ("y", lambda: y.sum().backward()), ("value", lambda: print(f"{outer.sum().item():.4f}"))]


def backward_to(i):
    """backward(inputs=...): only the way to these is run."""
    h = trunk(batches[i % 5])
    a, b = head(h.tanh()).square().mean(), other(h.sigmoid()).square().mean()
    (a + b).backward(inputs=[head.weight])
    return [("b", lambda: b.backward()), ("a", lambda: a.backward())]


def shared(i):
    """The trunk's graph has gone with the first head's; the second head's own is whole."""
    h = trunk(batches[i % 5]).tanh()
    first, second = head(h).square().mean(), other(h * 2).square().mean()
    first.backward()
    return [("second", lambda: second.backward()), ("h", lambda: h.sum().backward())]


def stored(i):
    """The same with a result that an object holds."""
    h = trunk(batches[i % 5]).tanh()
    kept.append(other(h).exp())
    head(h).square().mean().backward()
    return [("kept", lambda: kept[-1].sum().backward())]


def updated(i):
    """The parameters are written while what was computed with them is whole."""
    h = trunk(batches[i % 5])
    grad, = torch.autograd.grad(head(F.relu(h)).square().mean(), h)
    with torch.no_grad():
        head.weight.sub_(0.01 * grad.mean())
    return [("trunk", lambda: h.backward(grad))]


kept = []
for make in (middle, beside, backward_to, shared, stored, updated):
    print(make.__name__)
    for i in range(40):
        clear()
        ways = make(i)
        if i % 7 == 5:
            for name, way in ways[(i // 7) % 2:]:
                try:
                    way()
                    print(i, name, gradients())
                except RuntimeError as error:
                    print(i, name, str(error)[:60])

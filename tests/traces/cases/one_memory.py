# Tensors of one storage lie on one memory, with a graph, without one and with a freed one, and each counts versions as its own.
# expect: compiled>=0.5
import torch

w = torch.linspace(-1, 2, 16).reshape(4, 4).requires_grad_()


def show(name, *values):
    print(name, *(f"{value.sum().item():.4f}" if isinstance(value, torch.Tensor) else value for value in values))


for i in range(40):
    y = w * 2
    d = y.detach()
d.add_(1)
show("detach", y, d, y._version, d._version)

for i in range(40):
    y = w * 2
    n = y.detach().numpy()
n += 1
show("numpy", y, float(n.sum()))

for i in range(40):
    y = w * 2
    y.add_(1)
    d = y.detach()
    e, z = d[1:], y[:2]
e.add_(1)
show("views", y, d, e, z, y._version, z._version)

for i in range(40):
    y = (w * 2).exp()
    d, z = y[:, 1:].detach(), y[:, :2]
    (y * y).sum().backward()
d.add_(1)
show("freed", y, d, z, y._version, z._base is y)

for i in range(40):
    p, q = (w * 3).chunk(2, -1)
    p.mean().backward()
show("chunks", p, q, p._base is q._base)

w.grad = None
for i in range(120):  # written behind an exit
    y = (w * 2).sigmoid()
    d, v, a, b = y.detach(), y.view(16), y[:, :2], y[:, 1:]
    if i % 9 == 4:
        d[0] = 0.0
        show("written", v, a, b)
        try:
            y.sum().backward()
        except RuntimeError as error:
            print(str(error)[:70])
    elif i % 9 == 5:
        y.sum().backward()
        d[1] = 3
        show("behind backward", y, v, a)
    elif i % 9 == 7:
        v.detach().numpy()[:] = 1
        show("by numpy", y, d, b)
        a.mean().backward()
show("grad", w.grad)

leaf = torch.nn.Parameter(torch.ones(4))
data, plain = leaf.data, torch.ones(4)
same = plain.data
for i in range(60):
    if i % 5 == 0:
        data[0].div_(2)
        same[0].div_(2)
    with torch.no_grad():
        leaf.add_(1)
    plain.add_(1)
    if i % 11 == 0:
        show("versions", i, data._version, leaf._version, same._version, plain._version)


# What _unsafe_view gives counts for itself: a linear layer adds its bias to it.
weight, bias, wide = torch.randn(3, 2), torch.randn(3), torch.randn(4, 2, 9)
last = None
for _ in range(20):
    last = torch.nn.functional.linear(wide.transpose(-1, 1), weight, bias)
print(last._version, last._base, last.shape)

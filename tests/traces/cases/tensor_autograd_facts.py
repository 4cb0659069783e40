# What Python sees of a tensor's place in autograd: version, base, node; requires_grad_ and detach_ of tensors the trace was given or has made.
# expect: compiled>=0.65, traces>=3
import torch

torch.manual_seed(5)


def versions(n):
    x, seen = torch.zeros(4), []
    for i in range(n):
        x.add_(1)
        y = x[1:]
        y.mul_(0.5)
        z = x.detach()
        z.add_(1)
        f = x * 2
        v = f[0:2].mul_(3)
        seen.append((x._version, y._version, z._version, y._base is x, z._base is None, x.grad_fn is None, f._version, v._base is f, f._base))
    return seen[-1], len(set(s[0] for s in seen)), x.tolist()


def nodes(n):
    w, names = torch.nn.Parameter(torch.ones(3)), []
    for i in range(n):
        y = (w * i).relu()
        names.append(y.grad_fn.name() if y.grad_fn is not None else None)
        y.sum().backward()
        names.append(w.grad_fn)
    return names[-2:], w.grad.tolist()


def given(n):
    xs, total = [torch.ones(3) * k for k in range(n)], 0.0
    for x in xs:
        x.requires_grad_(True)
        total += (x.detach() * 2).sum().item()
    return sum(x.requires_grad for x in xs), total


def back_and_forth(n):
    xs, total = [torch.ones(3) * k for k in range(n)], 0.0
    for x in xs:
        x.requires_grad_(True)
        (x * 2).sum().backward()
        total += x.grad.sum().item()
        x.requires_grad_(False)
    return sum(x.requires_grad for x in xs), total


def detached(n):
    xs, total = [(torch.ones(3) * k).requires_grad_() for k in range(n)], 0.0
    ys = [x * 2 for x in xs]
    for x, y in zip(xs, ys):
        y.detach_()
        total += (y * 3).sum().item()
    return sum(y.requires_grad for y in ys), total, xs[0].requires_grad


def own_leaves(n):
    # A graph that goes back to a leaf made in the trace, which nobody holds.
    xs = [(torch.ones(3) * k) * torch.ones(3, requires_grad=True) for k in range(n)]
    xs[-1].sum().backward()
    return xs[-1].grad_fn.name(), xs[-2].requires_grad


def kept_leaves(n):
    kept = []
    for i in range(n):
        leaf = torch.full((2,), float(i)).requires_grad_()
        kept.append((leaf, leaf * leaf))
    leaf, square = kept[-1]
    square.sum().backward()
    return leaf.grad.tolist(), leaf.is_leaf


print(versions(60))
print(nodes(60))
print(given(60))
print(back_and_forth(60))
print(detached(60))
print(own_leaves(60))
print(kept_leaves(60))

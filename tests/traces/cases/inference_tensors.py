# Inference mode around the loop, in it as a context manager and as a decorator: its tensors are inference tensors, views of others are not.
# expect: compiled>=0.85, traces>=4
import torch
from torch import nn

torch.manual_seed(3)
model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 3))
xs = [torch.randn(5, 4) for _ in range(4)]


def what(t):
    return (t.is_inference(), t.requires_grad, t.is_leaf, t._is_view())


def around(n):
    total, kinds = 0.0, set()
    with torch.inference_mode():
        for i in range(n):
            y = model(xs[i % 4]).softmax(-1)
            total += y.sum().item() + y[0].max().item()
            kinds.add(what(y))
    return total, sorted(kinds), what(y)


def inside(n):
    total, kept = 0.0, []
    for i in range(n):
        x = xs[i % 4] * 2  # no inference tensor
        with torch.inference_mode():
            y = model(x)
            view, inner = x[1:3], y[0]
            z = torch.zeros(3) + i
        total += (y.argmax(-1).sum() + z.sum()).item()
        kept = [x, y, view, inner, z, y.detach(), x.detach(), z[1:]]
        if what(y) != what(inner)[:3] + (False,):
            print("other")
    return f"{total:.4f}", [what(t) for t in kept], kept[2]._base is kept[0], kept[0]._version


@torch.inference_mode()
def serve(x, scale):
    return torch.tanh(model(x) * scale)


def decorated(n):
    state, answers = torch.zeros(3), []
    for i in range(n):
        state = serve(xs[i % 4], i * 0.1)[0] + 0.5 * state.detach()
        answers.append(state.sum().item())
    return [f"{a:.4f}" for a in answers[::9]], what(state)


def mixed(n):
    # A normal tensor written under inference mode counts it; an inference tensor has no counter.
    x, out = torch.zeros(3), []
    cache = None
    for i in range(n):
        with torch.inference_mode():
            x.add_(i)
            x[0] = 1.0
            cache = x * 2 if cache is None else cache.mul_(0.5).add_(x)
        with torch.inference_mode(False):
            y = x + 1
        with torch.no_grad():
            out.append((cache.sum() + y.sum()).item())
    return f"{sum(out):.4f}", x._version, what(x), what(cache), what(y)


def switching(n):
    # The same code gets tensors of both kinds.
    out = []
    for i in range(n):
        with torch.inference_mode(i % 3 == 0):
            x = torch.ones(3) * i
        y = (x + 1).sum()
        out.append((x.is_inference(), y.is_inference(), y.item()))
    return len(set(out)), out[-3:]


def errors(t):
    for f in (lambda: t.add_(1), lambda: t._version, lambda: t.requires_grad_(), lambda: (t * nn.Parameter(torch.ones(3))).sum().backward()):
        try:
            f()
        except RuntimeError as error:
            print(str(error).split(".")[0])


def later(n):
    # What was made under inference mode is used outside of it.
    weight = nn.Parameter(torch.ones(3))
    grads = torch.zeros(3)
    for i in range(n):
        with torch.inference_mode():
            x = torch.full((3,), 1.0 + i)
        loss = (weight + x).sum() * 2
        loss.backward()
        grads += weight.grad
        weight.grad = None
    errors(x)
    return grads.tolist(), what(x), x.tolist()


print(around(60))
print(inside(60))
print(decorated(60))
print(mixed(60))
print(switching(60))
print(later(60))

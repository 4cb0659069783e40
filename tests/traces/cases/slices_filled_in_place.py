# Memory that is filled slice by slice under autograd: exits between the forward pass and backward() make its graph again.
# expect: traces>=8, compiled>=0.55
import torch
import torch.nn as nn

torch.manual_seed(0)


def padded(x, w):
    out = torch.zeros(3, 6)
    out[:, :4] = x @ w
    return out


def two_parts(x, w):
    out = torch.empty(3, 8)
    out[:, :4] = x @ w
    out[:, 4:] = (x @ w).tanh()
    return out * 2


def constants_beside(x, w):
    out = torch.zeros(3, 8)
    out[:, 0] = 1.5
    out[:, 1:5] = x @ w
    out[0] += 0.25
    return out.pow(2)


def of_a_graph(x, w):
    out = x @ w
    sums = out.sum(1, keepdim=True)
    out[:, :2] = (x @ w.t())[:, :2]
    return out * sums


def through_views(x, w):
    out = torch.zeros(3, 2, 4)
    rows = out.transpose(0, 1)
    rows[0].copy_(x @ w)
    rows[1].add_(x)
    out.view(3, 8)[:, 6:].mul_(3.0)
    return rows.exp()


def by_mask(x, w):
    out = torch.zeros(3, 4)
    out[x > 0] = (x @ w)[x > 0]
    return out


def scattered(x, w):
    out = torch.zeros(5, 4)
    out.index_add_(0, torch.tensor([0, 2, 4]), x @ w)
    return out[1:] * 2


def without_grad_between(x, w):
    out = torch.zeros(3, 6)
    out[:, :4] = x @ w
    with torch.no_grad():
        out[:, 4:] += 0.5
    return out.pow(2)


def drawn(x, w):
    out = torch.empty(3, 6).uniform_()
    out[:, :4] = x @ w
    return out


class Branch:
    every = 1000


def run(fill):
    w = nn.Parameter(torch.randn(4, 4) * 0.3)
    optimizer = torch.optim.SGD([w], lr=0.05)
    lines = []
    for i in range(60):
        x = torch.randn(3, 4)
        out = fill(x, w)
        loss = out.pow(2).mean()
        if i % Branch.every == 3:
            loss = loss + out.abs().mean()
        if i == 40:
            lines.append((type(out.grad_fn).__name__, out.requires_grad))
            (gradient,) = torch.autograd.grad(loss, w, retain_graph=True)
            lines.append(f"{gradient.sum().item():.4f}")
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if i % 20 == 19:
            lines.append(f"{loss.item():.4f} {w.sum().item():.4f}")
    return lines


for fill in (padded, two_parts, constants_beside, of_a_graph, through_views, by_mask, scattered, without_grad_between, drawn):
    for every in (1000, 7):
        Branch.every = every
        loop = type(run)(run.__code__.replace(), globals())
        print(fill.__name__, every, loop(fill))

# Results whose graphs outlive the iteration.
w = nn.Parameter(torch.randn(4, 4) * 0.3)
optimizer = torch.optim.SGD([w], lr=0.05)
kept = []
for i in range(60):
    kept.append((padded(torch.randn(3, 4), w).tanh() * 2).sin() + 0.5)
    if i % 2 == 0:
        continue
    loss = sum(k.pow(2).mean() for k in kept)
    kept.clear()
    optimizer.zero_grad()
    loss.backward()
    if i % 10 == 1:
        print(f"{loss.item():.4f} {w.grad.abs().sum().item():.4f}")
    optimizer.step()

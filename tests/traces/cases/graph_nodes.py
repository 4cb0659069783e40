# Graphs that outlive a trace: nodes of their own, whose backward is compiled, in every use that autograd has for a graph.
# expect: traces>=10, compiled>=0.3
import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(0)


def model():
    torch.manual_seed(1)
    return nn.Sequential(nn.Linear(8, 16), nn.Tanh(), nn.Linear(16, 4))


def show(title, *values):
    print(title, *[f"{v.item():.4f}" if torch.is_tensor(v) and v.numel() == 1 else v for v in values])


def norms(net):
    return [f"{p.grad.norm().item():.3f}" if p.grad is not None else None for p in net.parameters()]


def printed_between():
    net = model()
    opt = torch.optim.SGD(net.parameters(), lr=0.1)
    x = torch.randn(5, 8)
    for i in range(60):
        opt.zero_grad()
        loss = net(x).square().mean()
        print(end="")
        loss.backward()
        opt.step()
    show("printed_between", loss, loss.grad_fn.name(), type(loss.grad_fn).__name__, norms(net))


def collected():
    net = model()
    opt = torch.optim.Adam(net.parameters(), lr=0.01)
    for episode in range(40):
        log_probs, values = [], []
        for t in range(12):
            x = torch.randn(3, 8)
            h = net[1](net[0](x))
            out = net[2](h)
            log_probs.append(F.log_softmax(out, -1)[:, 0].sum())
            values.append(out.sum())
        opt.zero_grad()
        loss = torch.stack(log_probs).mean() - 0.1 * torch.stack(values).square().mean()
        loss.backward()
        opt.step()
    show("collected", loss, norms(net))


def hidden_state():
    torch.manual_seed(3)
    cell = nn.GRUCell(4, 6)
    read = nn.Linear(6, 1)
    params = [*cell.parameters(), *read.parameters()]
    for step in range(40):
        h = torch.zeros(2, 6)
        total = 0
        for t in range(60):
            h = cell(torch.randn(2, 4), h)
            total = total + read(h).mean()
        for p in params:
            p.grad = None
        total.backward()
    show("hidden_state", total, f"{sum(p.grad.norm().item() for p in params):.3f}")


def two_heads():
    net = model()
    a, b = nn.Linear(16, 2), nn.Linear(16, 3)
    seen = []
    for i in range(60):
        net.zero_grad()
        a.zero_grad()
        h = torch.relu(net[0](torch.ones(2, 8) * 0.1))
        left, right = a(h).sum(), b(h).sum()
        seen.append((left, right))
        left.backward(retain_graph=True)
        first = net[0].weight.grad.norm()
        if i % 2:
            right.backward()
        try:
            left.backward()
            again = "again"
        except RuntimeError as error:
            again = str(error)[:40]
    show("two_heads", first, again, norms(net)[:2])


def through_hidden():
    net = model()
    out = []
    for i in range(60):
        h = net[0](torch.ones(2, 8))
        y = net[2](torch.tanh(h)).sum()
        print(end="")
        out.append((h, y))
        g, = torch.autograd.grad(y, h, retain_graph=True)
        seen = []
        h.register_hook(lambda grad: seen.append(f"{grad.sum().item():.3f}"))
        y.backward()
    show("through_hidden", g.sum(), seen, norms(net))


def penalty():
    net = model()
    opt = torch.optim.SGD(net.parameters(), lr=0.05)
    for i in range(60):
        x = torch.full((3, 8), 0.1 * (i % 3 + 1), requires_grad=True)
        y = net(x).square().sum()
        print(end="")
        g, = torch.autograd.grad(y, x, create_graph=True)
        opt.zero_grad()
        (g.square().sum() + y).backward()
        opt.step()
    show("penalty", y, g.norm(), norms(net))


def dropped_out():
    net = nn.Sequential(nn.Linear(8, 16), nn.Dropout(0.5), nn.ReLU(), nn.Linear(16, 4))
    losses = []
    torch.manual_seed(7)
    for i in range(60):
        net.zero_grad()
        loss = F.cross_entropy(net(torch.randn(6, 8)), torch.arange(6) % 4)
        losses.append(loss)
        print(end="")
        loss.backward()
    show("dropped_out", sum(losses), norms(net))


def written_after():
    w = torch.ones(4, requires_grad=True)
    for i in range(60):
        y = (w * 2).exp()
        z = y * w
        print(end="")
        if i % 5 == 4:
            with torch.no_grad():
                y.add_(1)
        try:
            z.sum().backward()
            said = "fine"
        except RuntimeError as error:
            said = str(error)[:70]
    show("written_after", said, w.grad.sum())


def part_of_outputs():
    a = torch.ones(3, requires_grad=True)
    b = torch.ones(3, requires_grad=True)
    for i in range(60):
        a.grad = b.grad = None
        h = torch.sin(a + b)
        y, z = (h * a).sum(), (h * 2).sum()
        print(end="")
        of_a, of_b = torch.autograd.grad(y if i % 2 else z, (a, b), retain_graph=True)
    show("part_of_outputs", of_a.sum(), of_b.sum())
    for i in range(60):
        a.grad = b.grad = None
        y, z = (a * 2).sum(), (b * a.detach()).sum()
        print(end="")
        (y if i % 2 else z).backward()
    show("part_of_outputs", a.grad is None, b.grad is None)


def expanded():
    w = torch.ones(4, 3, requires_grad=True)
    for i in range(60):
        w.grad = None
        y = torch.sigmoid(w * 3)
        print(end="")
        y.sum().backward()
        first = w.grad.clone()
        y = torch.sigmoid(w * 3)
        print(end="")
        y.t().backward(torch.arange(12.0).reshape(3, 4))
    show("expanded", first.sum(), w.grad.sum())


def sharing_memory():
    """Elements of an output that share memory: those of its gradients may not."""
    w = torch.ones(4, 3, requires_grad=True)
    total, kept = 0.0, {}
    for i in range(60):
        w.grad = None
        y = kept["y"] = torch.sigmoid(w * 3).exp().expand(2, 4, 3).transpose(0, 1)
        print(end="")
        (y * 2 if i % 4 else y.exp()).sum().backward()
        total += w.grad.sum().item()
    show("sharing_memory", f"{total:.2f}")


def gradients_behind_a_write():
    """A second backward() goes through a tensor as it was before it was written in place, and as it is after that."""
    w = torch.linspace(-1, 1, 12).reshape(4, 3).requires_grad_()
    total, kept = 0.0, {}
    for i in range(60):
        w.grad = None
        u = w * (0.5 + 0.01 * i)
        y = kept["y"] = (1 - u.tanh()).mul_(u)
        grad, = torch.autograd.grad(y.square().mean(), w, create_graph=True)
        print(end="")
        grad.square().sum().backward()
        total += w.grad.sum().item()
    show("gradients_behind_a_write", f"{total:.3f}")


for each in (printed_between, collected, hidden_state, two_heads, through_hidden, penalty, dropped_out, written_after, part_of_outputs, expanded, sharing_memory, gradients_behind_a_write):
    each()


def in_parts(i):
    """Exits that show a part with a node beside what is made of it and has none: hooks and gradients go through both."""
    x = data[i % len(data)]
    w.grad = None
    y = (x @ w).tanh()
    loss = (y - 1).square().mean()
    first = torch.autograd.grad(loss, [w], retain_graph=True)[0]
    if i % 3 == 2:
        print("loss", loss)
    y.register_hook(lambda g: g * 0.5)
    by_y = torch.autograd.grad(loss, [y], retain_graph=True)[0]
    loss.backward()
    return [round(t.abs().sum().item(), 4) for t in (first, w.grad, by_y)]


torch.manual_seed(5)
w = torch.nn.Parameter(torch.randn(6, 4) * 0.5)
data = [torch.randn(3, 6) for _ in range(7)]
shown = []
for i in range(60):
    shown.append(in_parts(i))
print(shown)

# Graphs that the trace has not recorded: inputs with graphs of their own, tensors of residual calls, backward() and autograd.grad() that come to them.
# expect: traces>=6, compiled>=0.6
import torch
import torch.nn as nn

torch.manual_seed(0)


def net():
    return nn.Sequential(nn.Linear(2, 16), nn.Tanh(), nn.Linear(16, 1))


def show(name, model, loss):
    print(name, f"{loss.item():.5f}", f"{sum(p.abs().sum().item() for p in model.parameters()):.4f}")


# A network that solves an equation: its coordinates are converted once, with a graph.
x = torch.tensor([[0.1 * k] for k in range(12)], dtype=torch.float64, requires_grad=True).float()
t = torch.tensor([[0.05 * k] for k in range(12)], dtype=torch.float64, requires_grad=True).float()
model = net()
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
for i in range(60):
    u = model(torch.cat([x, t], 1))
    u_t = torch.autograd.grad(u, t, torch.ones_like(u), retain_graph=True, create_graph=True)[0]
    u_x = torch.autograd.grad(u, x, torch.ones_like(u), retain_graph=True, create_graph=True)[0]
    u_xx = torch.autograd.grad(u_x, x, torch.ones_like(u_x), retain_graph=True, create_graph=True)[0]
    loss = (u_t + u * u_x - 0.01 * u_xx).pow(2).mean() + (u - torch.sin(x)).pow(2).mean()
    optimizer.zero_grad()
    loss.backward(retain_graph=True)
    optimizer.step()
    if i % 20 == 19:
        show("equation", model, loss)

# Features with a graph that all steps share.
base = nn.Parameter(torch.randn(6, 2))
features = (base * 1.5).tanh()
head = net()
optimizer = torch.optim.SGD(head.parameters(), lr=0.05)
for i in range(60):
    loss = head(features).pow(2).mean() + features.abs().mean() * 0.1
    optimizer.zero_grad()
    loss.backward(retain_graph=True)
    optimizer.step()
    if i % 20 == 19:
        show("shared", head, loss)
        print(f"{base.grad.sum().item():.5f}")

# What a residual call gives has a graph, and the trace's own weights are in it too.
scripted = torch.jit.script(nn.Sequential(nn.Linear(2, 4), nn.Tanh()))
shared = nn.Linear(4, 4)


weights = list(scripted.parameters()) + list(shared.parameters())
optimizer = torch.optim.SGD(weights, lr=0.05)
for i in range(60):
    h = scripted(torch.randn(5, 2))
    y = shared(shared(h).relu()).sigmoid()
    loss = (y - h).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if i % 20 == 19:
        print("scripted", f"{loss.item():.5f}", f"{sum(p.abs().sum().item() for p in weights):.4f}")

# What it gives leads back to what the trace has made.
before = nn.Linear(3, 2)
weights += list(before.parameters())
optimizer = torch.optim.SGD(weights, lr=0.05)
for i in range(60):
    a = before(torch.randn(5, 3)).tanh()
    h = scripted(a)
    loss = (shared(h).sigmoid() - h).pow(2).mean() + a.abs().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if i % 20 == 19:
        print("between", f"{loss.item():.5f}", f"{sum(p.abs().sum().item() for p in weights):.4f}")
for i in range(40):
    h = scripted(before(torch.randn(5, 3)))
    optimizer.zero_grad()
    h.pow(2).mean().backward() if i % 2 else h.backward(torch.ones_like(h))
    optimizer.step()
print("alone", f"{sum(p.abs().sum().item() for p in weights):.4f}")

# Several roots; gradients of leaves that lie behind a tensor from outside and beside it; a tensor of the same memory without a graph.
leaf = torch.randn(3, 2, requires_grad=True)
calls = []
for i in range(60):
    outside = (leaf * 2).exp() if i % 5 == 0 else outside
    w = torch.ones(2, requires_grad=True)
    a, b = (outside * w).sum(), (outside + w).pow(2).sum() + outside.detach().sum() * w.sum()
    (g,) = torch.autograd.grad(a, w, retain_graph=True)
    try:
        (behind,) = torch.autograd.grad(b, leaf, retain_graph=True)
    except RuntimeError as error:
        behind = torch.zeros(3, 2)
        calls.append(str(error)[:40])
    torch.autograd.backward([a, b], retain_graph=True)
    if i % 20 == 19:
        print("several", f"{g.sum().item():.4f} {behind.sum().item():.4f} {leaf.grad.sum().item():.3f} {w.grad.sum().item():.4f}")

# The graph outside has been freed: the second backward() fails, in the engine.
outside = (leaf * 3).sin()
failed = 0
for i in range(40):
    w = torch.ones(2, requires_grad=True)
    loss = (outside * w).pow(2).sum()
    try:
        loss.backward()
    except RuntimeError as error:
        failed += 1
        message = str(error)[:48]
    if i == 20:
        outside = (leaf * 3).sin()
print("freed", failed, message, f"{leaf.grad.sum().item():.3f}", None if w.grad is None else f"{w.grad.sum().item():.4f}")

# The trace's part of the graph runs no operation: the engine hands its gradient on to what came from outside.
for i in range(40):
    if i % 10 == 0:
        a, b = (leaf * 2).sin().sum(), leaf.exp().mean()
    leaf.grad = None
    (a + b).backward(retain_graph=True)
    if leaf.grad is not None:
        with torch.no_grad():
            leaf.sub_(leaf.grad, alpha=0.0)
    if i % 10 == 9:
        print("handed on", i, f"{leaf.grad.sum().item():.4f}")

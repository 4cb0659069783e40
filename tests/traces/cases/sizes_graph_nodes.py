# Graphs that outlive traces whose sizes change: the backward of a node is made for the sizes of its forward.
# expect: compiled>=0.6, open_sizes>=4
import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(0)


def model(inputs=6, outputs=4):
    torch.manual_seed(1)
    return nn.Sequential(nn.Linear(inputs, 16), nn.Tanh(), nn.LayerNorm(16), nn.Linear(16, outputs))


def norms(parameters):
    return [f"{p.grad.norm().item():.3f}" for p in parameters]


def sizes(count, most, least=3):
    return [least + (7 * k + k // 3) % (most - least) for k in range(count)]


def batches():
    net = model()
    losses = []
    for n in sizes(120, 14):
        x, y = torch.randn(n, 6), torch.randint(0, 4, (n,))
        losses.append(F.cross_entropy(net(x), y))
        if len(losses) == 12:
            print(end="")
            loss = torch.stack(losses).mean()
            loss.backward()
            losses.clear()
    print("batches", f"{loss.item():.4f}", loss.grad_fn.name(), norms(net.parameters()))


def lengths_and_batches():
    """Nothing that a node saves has the size that the gradient of the sum is expanded to; views are made of products of sizes."""
    table, gain = nn.Embedding(20, 6), nn.Parameter(torch.ones(6))
    total = []
    for n, t in zip(sizes(160, 9), sizes(160, 12, 4)):
        ids = torch.randint(0, 20, (n, t))
        h = (table(ids) * gain).view(n * t, 6)
        h = torch.cat([h, h.flip(0)], 1).view(n, t, 12).transpose(0, 1)
        total.append(h.sum())
        total.append(h.contiguous().tanh().mean((1, 2)).norm())
        if len(total) == 20:
            sum(total).backward()
            total = []
    print("lengths", norms([*table.parameters(), gain]))


def twice():
    """A backward() that keeps the graph, one with create_graph: the forward runs again, with its numbers."""
    net = model()
    kept = []
    for x in [torch.randn(n, 6, requires_grad=True) for n in sizes(80, 11)]:
        n = x.shape[0]
        y = net(x).view(-1, 2, 2).transpose(1, 2).reshape(n, -1)
        kept.append((x, y.square().sum(1)))
    for x, y in kept[-30:]:
        y.sum().backward(retain_graph=True)
        (gx,) = torch.autograd.grad(y.mean(), x, create_graph=True)
        gx.square().sum().backward()
    print("twice", norms(net.parameters()), f"{x.grad.norm().item():.4f}")


def experts():
    """Rows that data choose: their number is known in no run before."""
    nets = [model(8, 8) for _ in range(4)]
    route = nn.Linear(8, 4)
    parameters = [p for net in [*nets, route] for p in net.parameters()]
    for n in sizes(60, 24, 16):
        x = torch.randn(n, 8)
        weights, choice = route(x).softmax(-1).topk(2, -1)
        parts = []
        for k, net in enumerate(nets):
            rows, slots = torch.where(choice == k)
            if rows.numel() > 1:
                parts.append((net(x[rows]) * weights[rows, slots, None]).square().mean())
        torch.stack(parts).mean().backward()
    print("experts", norms(parameters))


batches()
lengths_and_batches()
twice()
experts()

# Objects that a variable of the module, a list or an attribute holds before autograd sees them written: behind the loop that has written them they have the graph that eager gives them.
# expect: traces>=1
import types

import torch

torch.manual_seed(0)
w = torch.ones(3, requires_grad=True)

losses = []
for step in range(12):
    loss = torch.zeros(1)
    loss += (w * step).sum()
    losses.append(loss)
torch.stack(losses).sum().backward()
print(w.grad, [each.grad_fn.name() for each in losses[::4]])

for step in range(12):
    out = torch.zeros(4, 3)
    out[0] = w * 2
    for t in range(1, 4):
        out[t] = w * t
print(out.requires_grad, type(out.grad_fn).__name__, out.grad_fn.name(), out._version)
w.grad = None
out.sum().backward()
print(w.grad)


def kept_before(steps):
    kept, holder, v = [], types.SimpleNamespace(), torch.ones(3, requires_grad=True)
    for step in range(steps):
        total = torch.zeros(3)
        kept.append(total)
        holder.last = total
        total += v * step
        total.mul_(0.5)
    torch.stack(kept).sum().backward()
    return v.grad.tolist(), holder.last.grad_fn.name(), holder.last._version, holder.last.tolist()


def scaled_between(steps):
    v, kept = torch.ones(3, requires_grad=True), []
    for step in range(steps):
        h = torch.tanh(v * step)
        kept.append(h)
        loss = h.sum()
        h.mul_(2.0)  # the graph of tanh has saved it
        kept.append((h * h).sum() * 0.1)
        try:
            loss.backward(retain_graph=True)
        except RuntimeError as error:
            kept[-1] = str(error)[:40]
    return [each if isinstance(each, str) else (each.grad_fn.name(), each._version) for each in kept[-2:]]


def looked_at(steps):
    v, names = torch.ones(3, requires_grad=True), []
    for step in range(steps):
        total = torch.zeros(3)
        box = [total]
        total += v * step
        names.append(repr(box))
        total *= v
    names.append(total.grad_fn.name())
    total.sum().backward()
    return names[-2:], v.grad.tolist()


def trained(steps):
    v = torch.ones(3, requires_grad=True)
    optimizer = torch.optim.SGD([v], lr=0.01)
    box = {}
    for step in range(steps):
        box["loss"] = torch.zeros(())
        for k in range(3):
            box["loss"] += (v * k).pow(2).sum()
        optimizer.zero_grad()
        box["loss"].backward()
        optimizer.step()
    return f"{box['loss'].item():.5f}", box["loss"].grad_fn.name(), v.tolist()


for how in (kept_before, scaled_between, looked_at, trained):
    print(how.__name__, how(40))

m = torch.nn.Linear(4, 4)
optimizer = torch.optim.SGD(m.parameters(), lr=0.01)
for step in range(60):
    penalty = torch.zeros(1)
    penalty += m.weight.abs().sum()
    best = m(torch.ones(2, 4)).topk(2)
    best.values.div_(2.0)
    loss = best.values.mean() + penalty
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 10 == 9:
        print(step, penalty.requires_grad, penalty.grad_fn.name(), best.values.grad_fn.name(), penalty._version, f"{loss.item():.5f}")

experts = torch.nn.ModuleList([torch.nn.Linear(4, 4) for _ in range(3)])
optimizer = torch.optim.SGD(experts.parameters(), lr=0.01)
for step in range(60):  # weights that only a variable holds, beside modules by a tensor's number
    x = torch.randn(5, 4, generator=torch.Generator().manual_seed(step))
    weights, chosen = torch.softmax(x[:, :3], 1).topk(2)
    weights /= weights.sum(1, keepdim=True)
    y = torch.zeros(5, 4)
    for k in torch.tensor([[step % 3], [2]]):
        y = y + torch.tanh(experts[k](x)) * weights[:, :1]
    loss = y.pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 20 == 19:
        print(step, weights.requires_grad, weights._version, f"{loss.item():.5f}")

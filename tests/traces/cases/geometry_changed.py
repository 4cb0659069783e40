# Tensors from before the trace that it gives another geometry in place: the call stays one, and what follows reads the tensor as it is then.
# expect: compiled>=0.8, traces>=1
import torch
import torch.nn as nn

torch.manual_seed(0)
w = nn.Parameter(torch.randn(6, 5) * 0.3)
optimizer = torch.optim.SGD([w], lr=0.05)
rows = [torch.randint(0, 5, (4,)) for _ in range(60)]
kept = torch.randn(4, 6)
for step in range(60):
    target = rows[step]
    before = target.sum()
    target.unsqueeze_(-1)
    scores = torch.log_softmax(kept.clone() @ w, 1)
    loss = -scores.gather(1, target).mean() + 0.0 * before
    kept.t_()
    loss = loss + 0.01 * (w.sum(1) * kept.detach().clone().sum(1)).pow(2).mean()
    kept.transpose_(0, 1)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    target.squeeze_(1)
    if step % 20 == 19:
        print(f"{loss.item():.5f} {before.item()}", target.shape, target._version, kept.shape, kept.stride(), kept._version, target.is_contiguous())

views = [torch.arange(6.0) for _ in range(40)]
seen = []
for x in views:
    y = x[1:3]
    x.unsqueeze_(0)
    z = x.expand(2, 6) * y.sum()
    x.squeeze_()
    seen.append((z.sum().item(), x.dim(), y._base is x, y._version))
print(seen[::13])


def made_inside(steps):
    total, last = 0.0, None
    for i in range(steps):
        made = torch.full((3,), float(i))
        box = [made]
        made.unsqueeze_(1)
        made *= 2
        total += (box[0] + made.t()).sum().item()
        last = box
    return total, last[0].shape, last[0]._version, last[0]._base


print(made_inside(60))
made = None
for i in range(60):
    made = torch.arange(4.0) + i
    made.unsqueeze_(0)
    y = made.expand(2, 4).sum() + made.squeeze_().sum()
print(y.item(), made.shape, made._version)

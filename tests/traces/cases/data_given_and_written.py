# `.data` has a version counter of its own: what is written through it does not count, and a tensor that is given other data counts its own writes still.
# expect: compiled>=0.5
import torch

p = torch.zeros(3)
for i in range(60):
    old = p.clone()
    p.add_(0.5)
    p.data = old
    p.add_(0.1)
print(p._version, old._version, [f"{v:.3f}" for v in p.tolist()])

weight = torch.nn.Parameter(torch.ones(3))
for i in range(60):
    kept = weight.data.clone()
    weight.data = weight.data + 0.1
    loss = (weight * weight).sum().item()
    weight.data = kept
    weight.data.mul_(0.99)
print(weight._version, kept._version, f"{loss:.4f}")


def grown(x):
    y = x.clone()
    for k in range(10):
        y.data.add_(0.1).clamp_(-3, 3)
    z = y.data
    z.mul_(2)
    return y, z.tolist()


for i in range(40):
    y, z = grown(torch.ones(2) * i)
print(y._version, y.tolist(), z)

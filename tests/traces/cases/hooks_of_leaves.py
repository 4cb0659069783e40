# Hooks of leaves are part of the compiled step; one is taken away in the middle, and what another one uses changes.
# expect: compiled>=0.7
import torch

torch.manual_seed(0)
w = torch.randn(5, requires_grad=True)
v = torch.randn(5, requires_grad=True)
mask = torch.ones(5)
mask[0] = 0.0
w.register_hook(lambda g: g * mask)
handle = v.register_hook(lambda g: g.clamp(-limit, limit))
limit = 0.1
x = torch.randn(7, 5)


def train(steps):
    for i in range(steps):
        y = torch.tanh(x * w) * v
        y.pow(2).mean().backward()
        with torch.no_grad():
            w.sub_(w.grad, alpha=0.3)
            v.sub_(v.grad, alpha=0.3)
        w.grad = v.grad = None
    print([f"{a:.6f}" for a in [*w.tolist(), *v.tolist()]])


train(60)
limit = 0.02
train(60)
handle.remove()
mask[1] = 0.0
train(60)

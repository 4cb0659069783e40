# Hooks on tensors change gradients and see them; a post-accumulate hook steps by itself.
import torch

torch.manual_seed(0)
w = torch.randn(5, requires_grad=True)
v = torch.randn(5, requires_grad=True)
seen = []
w.register_hook(lambda g: g * 0.5)


def descend(p):
    with torch.no_grad():
        p.sub_(p.grad, alpha=0.1)
    p.grad = None


v.register_post_accumulate_grad_hook(descend)
x = torch.randn(7, 5)
for i in range(40):
    y = torch.tanh(x * w) * v
    y.register_hook(lambda g: seen.append(g.shape) or None)
    y.pow(2).mean().backward()
    with torch.no_grad():
        w -= 0.1 * w.grad
        w.grad.zero_()
print(len(seen), seen[0], [f"{a:.6f}" for a in w.tolist()], [f"{a:.6f}" for a in v.tolist()], v.grad)

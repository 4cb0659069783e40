# A leaf is given other data while a graph is alive that has it among its operands: autograd kept the leaf itself, whose newest data backward() sees.
# expect: traces>=1
import torch
torch.manual_seed(0)
torch.set_default_dtype(torch.float64)
w = torch.nn.Parameter(torch.randn(6, 4)); v = torch.nn.Parameter(torch.randn(4), requires_grad=False)
q = torch.randn(4)
def step(w, v, x):
    s = w.mv(v)
    return x * s
for i in range(120):
    # used, then replaced before its backward, with an exit between
    y = step(w, v, torch.randn(6))
    v.data = torch.rand(4) + i * 0.01
    if i % 7 == 3:
        print("exit", i, f"{y.sum().item():.6f}")
    y = y.tanh().sum()
    w.grad = None
    y.backward()
    w.data.sub_(0.05 * w.grad)
    if i % 10 == 9:
        print(i, f"{w.grad.norm().item():.8f}")
for i in range(120):
    # twice, a buffer that no parameter is
    a = step(w, q, torch.randn(6))
    q.data = torch.rand(4) * 3
    b = step(w, q, torch.randn(6))
    q.data = q.data * 2
    if i % 7 == 3:
        print("exit", i, f"{a.sum().item():.6f}")
    w.grad = None
    (a - b).tanh().sum().backward()
    w.data.sub_(0.05 * w.grad)
    if i % 10 == 9:
        print(i, f"{w.grad.norm().item():.8f}")
p = torch.nn.Parameter(torch.randn(3))
for i in range(120):
    # what is trained itself
    z = (p * p).exp()
    p.data = p.data * 0.5
    if i % 7 == 3:
        print("exit", i, f"{z.sum().item():.6f}")
    p.grad = None
    z.sum().backward()
    if i % 10 == 9:
        print(i, f"{p.grad.norm().item():.8f} {p.sum().item():.8f}")
    p.data = torch.rand(3)

# Spectral norm in its first form: twice before backward(), the weight is an attribute of a module.
module = torch.nn.Module()
for i in range(60):
    outputs = []
    for k in range(2):
        v.data = torch.mv(w.data.t(), torch.rand(6))
        sigma = w.mv(v)
        setattr(module, "weight", w * sigma[:, None])
        outputs.append((torch.randn(8, 4) + k) @ module.weight.t())
    w.grad = None
    (outputs[0] - outputs[1]).tanh().mean().backward()
    w.data.sub_(0.05 * w.grad)
    if i % 10 == 9:
        print("spectral", i, f"{w.grad.norm().item():.8f}")

# Written in place, where no version counts it: backward() sees what the leaf holds then, and what was computed from it before. Also with create_graph=True, and with an exit between.
def direction(x, eps=1e-12):
    return x / (x.norm() + eps)


u = torch.nn.Parameter(torch.randn(6), requires_grad=False)


def normed(x):
    v.data.copy_(direction(torch.mv(w.data.t(), u.data)))
    u.data.copy_(direction(torch.mv(w.data, v.data + 0.3 * torch.rand(4))))
    module.weight = w / u.dot(w.mv(v)).expand_as(w)
    return x @ module.weight.t()


for i in range(90):
    a, b = normed(torch.randn(8, 4)), normed(torch.randn(8, 4) + 1)
    w.grad = None
    loss = (a - b).tanh().mean()
    if i % 11 == 5:
        print("between", i, f"{loss.item():.8f}")
    if i % 3 == 2:
        (g,) = torch.autograd.grad(loss, w, create_graph=True)
        loss = loss + g.square().sum()
    loss.backward()
    w.data.sub_(0.05 * w.grad)
    if i % 10 == 9:
        print("in place", i, f"{w.grad.norm().item():.8f}")

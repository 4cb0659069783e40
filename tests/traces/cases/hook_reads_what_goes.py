# A gradient's hook reads a global and a closure's variable that are there in some steps and gone in others.
# expect: traces>=1
import torch

torch.manual_seed(0)
weight = torch.nn.Parameter(torch.ones(3))


def hooked():
    factor = 0.5

    def halve(grad):
        if "limit" in globals():
            grad = grad.clamp(-limit, limit)
        try:
            return grad * factor
        except NameError:
            return grad

    def step(i):
        nonlocal factor
        global limit
        if i % 7 == 5:
            del factor
            del limit
        elif i % 7 == 0:
            factor = 0.5 + i
            limit = 1 + i / 10

    weight.register_hook(halve)
    return step


limit = 1
step = hooked()
for i in range(40):
    step(i)
    weight.grad = None
    (torch.randn(3) * weight).sum().backward()
    print(i, [f"{value:.4f}" for value in weight.grad.tolist()])

# torch.func transforms inside compiled functions and around them.
import torch


@torch.compile(backend="eager")
def f(x):
    return torch.func.vmap(lambda row: row.sin().sum())(x)


@torch.compile(backend="aot_eager")
def g(x):
    return torch.func.grad(lambda x: (x**3).sum())(x)


total = torch.zeros(3)
for i in range(50):
    x = torch.full((3, 2), i / 20)
    total = total + f(x) + g(x).sum(1) + torch.func.vmap(torch.func.grad(lambda r: (r**2).sum()))(x).sum(1)
print(total)

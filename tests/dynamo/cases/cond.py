# torch.cond without torch.compile, by data and by a number; with gradients; and in a compiled function.
import torch


def up(x):
    return x.sin() + 1


def down(x):
    return x.cos() - 1


total = torch.zeros(3)
for i in range(100):
    total = total + torch.cond(total.sum() > 5, down, up, (total,))
print(total)


@torch.compile(backend="eager")
def f(x):
    return torch.cond(x.sum() > 0, lambda x: x * 2, lambda x: x - 1, (x,))


total = torch.zeros(3)
for i in range(60):
    total = total + f(torch.full((3,), i - 30.0))
print(total)

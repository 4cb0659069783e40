# Autocast, no_grad and inference mode around and inside compiled functions.
import torch

torch.manual_seed(0)
w = torch.randn(4, 4)


@torch.compile(backend="eager")
def f(x):
    with torch.autocast("cpu", dtype=torch.bfloat16):
        y = x @ w
    with torch.no_grad():
        z = y.float().sum()
    return y, z


@torch.compile(backend="eager")
def g(x):
    return x @ w


kinds = set()
total = torch.zeros(())
for i in range(60):
    y, z = f(torch.ones(2, 4))
    with torch.autocast("cpu", dtype=torch.bfloat16, enabled=i % 2 == 0):
        a = g(torch.ones(2, 4))
    with torch.inference_mode(i % 3 == 0):
        b = g(torch.ones(2, 4))
    kinds.add((str(y.dtype), str(a.dtype), b.is_inference()))
    total = total + z + a.float().sum() + b.sum()
print(total, sorted(kinds))

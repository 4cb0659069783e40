# Compiled functions come and go with torch._dynamo.reset().
import torch


def f(x):
    return x.sin() + x.cos()


for i in range(5):
    torch._dynamo.reset()
    g = torch.compile(f, backend="eager")
    total = 0.0
    for k in range(40):
        total += g(torch.full((3,), float(k))).sum().item()
    print(i, round(total, 4))

# FakeTensorMode, functional tensors and meta tensors in hot loops.
import torch
from torch._subclasses.fake_tensor import FakeTensorMode

shapes = []
total = torch.zeros(())
for i in range(50):
    with FakeTensorMode() as mode:
        x = torch.empty(i % 3 + 1, 4)
        y = torch.nn.functional.linear(x, torch.empty(5, 4)).relu().sum(1)
        shapes.append((type(y).__name__, tuple(y.shape)))
    total = total + torch.ones(2).sum()
    z = torch.ones(3, device="meta") @ torch.ones(3, 2, device="meta")
    shapes.append(tuple(z.shape))
    w = torch.func.functionalize(lambda x: x.add_(1).sum())(torch.ones(2))
    total = total + w
print(total, sorted(set(map(str, shapes))))

# Higher-order operators, called from loops of eager code and in compiled functions.
import torch
from torch._higher_order_ops import invoke_subgraph as module  # noqa: F401
from torch._higher_order_ops.map import map as map_op
from torch._higher_order_ops.while_loop import while_loop


@torch.compiler.nested_compile_region
def layer(x, w):
    return torch.relu(x @ w)


@torch.compile(backend="eager", fullgraph=True)
def layers(x, w):
    return layer(layer(x, w), w).sum()


torch.manual_seed(0)
w = torch.randn(4, 4)
total = torch.zeros(())
for i in range(50):
    total = total + layers(torch.randn(2, 4), w)
print(total)


@torch.compile(backend="eager", fullgraph=True)
def count(i, x):
    return while_loop(lambda i, x: i < 5, lambda i, x: (i + 1, x * 1.5), (i, x))


@torch.compile(backend="eager", fullgraph=True)
def mapped(xs, y):
    return map_op(lambda x, y: x + y, xs, y)


for k in range(40):
    i, x = count(torch.tensor(k % 5), torch.ones(2))
    total = total + x.sum() + i + mapped(torch.ones(3, 2) * k, torch.ones(2)).sum()
print(total)

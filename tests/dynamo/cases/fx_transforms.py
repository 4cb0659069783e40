# An interpreter and a transformer of graphs, and make_fx, in a loop.
import torch
from torch.fx.experimental.proxy_tensor import make_fx


class Swap(torch.fx.Transformer):
    def call_function(self, target, args, kwargs):
        return super().call_function(torch.cos if target is torch.sin else target, args, kwargs)


def f(x):
    return torch.sin(x) + 1


total = torch.zeros(2)
for i in range(50):
    module = torch.fx.symbolic_trace(f)
    x = torch.full((2,), i / 10)
    total = total + Swap(module).transform()(x) + torch.fx.Interpreter(module).run(x)
print(total)
for i in range(8):
    made = make_fx(lambda x: torch.nn.functional.gelu(x).sum() + x.mean())(torch.ones(2, 2))
    total = total + made(torch.ones(2, 2) * i)
print(total, made.code)

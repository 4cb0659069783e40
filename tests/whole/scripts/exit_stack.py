# An ExitStack enters as many contexts as a step needs and unwinds them in order, also when one raises.
# expect: compiled>=0.2, traces>=1
from contextlib import ExitStack, contextmanager

import torch
from torch import nn

log = []


@contextmanager
def scaled(layer, by):
    layer.weight.data.mul_(by)
    try:
        yield layer
    finally:
        layer.weight.data.div_(by)
        log.append(by)


torch.manual_seed(32)
layers = [nn.Linear(4, 4, bias=False) for _ in range(3)]
x = torch.randn(2, 4)
total, failed = 0.0, 0
for step in range(40):
    try:
        with ExitStack() as stack:
            stack.enter_context(torch.no_grad())
            active = [stack.enter_context(scaled(layer, 0.5 + k)) for k, layer in enumerate(layers[:1 + step % 3])]
            stack.callback(log.append, "end")
            y = x
            for layer in active:
                y = torch.relu(layer(y)) + 0.1
            if step % 11 == 10:
                raise ArithmeticError(len(active))
            total += y.mean().item()
    except ArithmeticError as error:
        failed += error.args[0]
print(f"{total:.4f}", failed, len(log), log[:6], [f"{layer.weight.sum().item():.4f}" for layer in layers])

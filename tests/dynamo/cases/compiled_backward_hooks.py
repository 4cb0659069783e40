# Hooks of tensors and modules in and around compiled functions.
import collections
import logging

import torch

torch._logging.set_logs(dynamo=logging.ERROR)

torch.manual_seed(0)
seen = collections.Counter()
model = torch.nn.Linear(3, 3)
model.register_forward_hook(lambda module, args, out: seen.update(forward=1) or out * 2)
model.weight.register_hook(lambda grad: seen.update(grad=1) or grad * 0.5)
compiled = torch.compile(model, backend="aot_eager")
for i in range(50):
    out = compiled(torch.ones(2, 3) * i)
    out.register_hook(lambda grad: seen.update(out=1))
    out.sum().backward()
    with torch.no_grad():
        model.weight -= 0.001 * model.weight.grad
    model.zero_grad()
print(model.weight.sum(), sorted(seen.items()))

# Classes, modules and functions made in the loop, compiled or not; what guards held goes with them.
import gc
import weakref

import torch

dead = []
total = torch.zeros(())
for i in range(12):

    class Layer(torch.nn.Module):
        by = i

        def forward(self, x):
            return x * self.by

    layer = Layer()
    weakref.finalize(layer, dead.append, i)
    compiled = torch.compile(layer, backend="eager")
    for k in range(20):
        total = total + compiled(torch.ones(2)).sum() + layer(torch.ones(2)).mean()
    del layer, compiled, Layer
    torch._dynamo.reset()
gc.collect()
print(total, len(dead))

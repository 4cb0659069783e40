# Activation checkpoints in compiled functions and around them.
import torch
from torch.utils.checkpoint import checkpoint

torch.manual_seed(0)
layer = torch.nn.Linear(4, 4)


@torch.compile(backend="aot_eager")
def f(x):
    return checkpoint(lambda x: torch.sin(layer(x)), x, use_reentrant=False).sum()


compiled = torch.compile(layer, backend="eager")
for i in range(40):
    x = torch.ones(2, 4) * (i / 20)  # larger ones turn sin so far that one rounding is seen in all digits later
    loss = f(x) + checkpoint(compiled, x, use_reentrant=False).sum()
    loss.backward()
    with torch.no_grad():
        for p in layer.parameters():
            p -= 0.001 * p.grad
            p.grad = None
print(layer.weight)

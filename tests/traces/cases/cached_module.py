# A module that a cached function gives, as optimizers ask for one in each step to see whether there is an accelerator: its attributes are known, and it may be asked for while a graph is alive.
# expect: compiled>=0.9, traces>=1
import functools
import math

import torch


@functools.cache
def module_of(name):
    return math if name == "math" else torch


def main():
    torch.manual_seed(0)
    layer = torch.nn.Linear(8, 8)
    x = torch.randn(4, 8)
    total, held = 0.0, {}
    for i in range(60):
        loss = layer(x).square().mean()
        held["loss"] = loss
        scale = module_of("math").sqrt(4.0)
        if module_of("torch").is_grad_enabled():
            (loss * scale).backward()
        with torch.no_grad():
            for p in layer.parameters():
                p -= 0.05 * p.grad
                p.grad = None
        total += loss.item()
    print(f"{total:.4f}")


main()

# Parts of a training step with names (dynvm.zone), nested, as a decorator, and left by an exception.
# expect: compiled>=0.9, traces>=1
import os
import sys

import torch

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "..", "python"))
import dynvm

torch.manual_seed(0)
layer = torch.nn.Linear(6, 6)
optimizer = torch.optim.SGD(layer.parameters(), 0.01)


@dynvm.zone("loss")
def loss_of(y):
    with dynvm.zone("inner"):
        return y.pow(2).mean()


def train(n):
    last = 0.0
    x = torch.arange(12.0).reshape(2, 6)
    for step in range(n):
        with dynvm.zone("step"):
            loss = loss_of(layer(x + step % 3))
            optimizer.zero_grad()
            loss.backward()
            with dynvm.zone("update"):
                optimizer.step()
            last = loss.item()
    return last


def interrupted(n):
    total = torch.zeros(())
    for i in range(n):
        try:
            with dynvm.zone("interrupted"):
                total = total + i
                if i % 40 == 39:
                    raise ValueError(i)
        except ValueError as error:
            total = total - error.args[0]
    return total.item()


print(f"{train(200):.6f}")
print(interrupted(200))
zones = dynvm.stats().get("zones")
print(zones is None or [zones[name]["count"] for name in ("loss", "inner", "step", "update", "interrupted")] == [200] * 5)

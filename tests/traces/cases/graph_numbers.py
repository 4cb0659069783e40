# Numbers that change and that backward() uses: as they are, more than once, and turned into others.
# expect: compiled>=0.32
import types

import torch
from torch import nn

torch.manual_seed(0)
x, y = torch.randn(8, 4), torch.randn(8, 2)


def shared_train(name, objective, steps=40):
    torch.manual_seed(1)
    model = nn.Linear(4, 2)
    losses = []
    for i in range(steps):
        model.zero_grad()
        loss = objective(model(x), i)
        loss.backward()
        with torch.no_grad():
            for p in model.parameters():
                p -= 0.05 * p.grad
        losses.append(loss.item())
    print(name, f"{losses[3]:.6f} {losses[-1]:.6f} {model.weight.sum().item():.6f}")


def train(name, objective):
    # Code of its own for each: a loop that meets another function is another matter.
    types.FunctionType(shared_train.__code__.replace(), globals())(name, objective, 40)


train("scaled", lambda out, i: (out - y).pow(2).mean() * (1.0 + i * 0.01))
train("divided", lambda out, i: (out - y).pow(2).mean() / (1.0 + i * 0.01))
train("shifted", lambda out, i: (out - y + i * 0.01).abs().mean())
train("twice", lambda out, i: (out * (1.0 + i * 0.01) - y).pow(2).mean() * (1.0 + i * 0.01))
train("one number twice", lambda out, i: (lambda s: ((out * s - y) * s).pow(2).mean())(1.0 + i * 0.01))
train("two numbers", lambda out, i: (out * (1.0 + i * 0.01) - y).abs().mean() * (1.5 - i * 0.01))
train("equal at first", lambda out, i: (out * (1.0 + max(i - 9, 0) * 0.01) - y).abs().mean() * (1.0 + max(i - 12, 0) * 0.02))
train("as a constant", lambda out, i: ((out - y) * 2.0).abs().mean() * (2.0 if i < 20 else 1.0 + i * 0.05))
train("power", lambda out, i: (out - y).abs().add(0.1).pow(1.5 + i * 0.01).mean())
train("slope", lambda out, i: nn.functional.leaky_relu(out - y, 0.1 + i * 0.01).pow(2).mean())
train("alpha", lambda out, i: torch.add(y, out, alpha=0.5 + i * 0.01).pow(2).mean())

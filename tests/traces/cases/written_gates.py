# Loops of nn.LSTMCell and the like that carry two tensors with graphs: one operation makes the memory of all gates, and each gate is written in place, some of them for one of the two alone.
# expect: compiled>=0.3
import torch
from torch import nn

torch.manual_seed(0)
cell, second, head = nn.LSTMCell(3, 5), nn.LSTMCell(5, 5), nn.Linear(5, 1)
parameters = [*cell.parameters(), *second.parameters(), *head.parameters()]
data = torch.randn(60, 4, 3)


def show(values):
    return [round(value, 3) for value in values]


def sequence(steps, use):
    h, c = torch.zeros(4, 5), torch.zeros(4, 5)
    h2, c2 = torch.zeros(4, 5), torch.zeros(4, 5)
    outputs = []
    for t in range(steps):
        x = data[t]
        h, c = cell(x, (h, c))
        h2, c2 = second(h, (h2, c2))
        outputs.append(head(h2))
    return {"all": torch.cat(outputs, 1).pow(2).mean() + c.sum() / 50, "cells": (c + c2).pow(2).mean(), "output": h2.mean(), "last": outputs[-1].pow(2).mean()}[use]


for use in ("all", "cells", "output", "last"):
    losses = []
    for steps in (7, 20, 33, 20, 41, 12, 60, 25) * 3:
        loss = sequence(steps, use)
        grads = torch.autograd.grad(loss, parameters, allow_unused=True)
        with torch.no_grad():
            for p, g in zip(parameters, grads):
                if g is not None:
                    p -= 0.3 * g
        losses.append(loss.item())
    print(use, show(losses[::5]), show([p.sum().item() for p in parameters]))


def halves(steps):  # by hand: a product that both need, written where only one does
    a, b = torch.ones(4, 6), torch.ones(4, 3)
    w = parameters[0][:6, :3].detach().clone().requires_grad_()
    for t in range(steps):
        x = data[t]
        both = x @ w.t() + a * 0.5
        left, right = torch.unsafe_chunk(both, 2, 1)
        b = b * 0.9 + left.sigmoid_()
        a = torch.cat([b, right.tanh_()], 1)
    return w, a, b


for steps in (9, 30, 50, 22, 60) * 3:
    w, a, b = halves(steps)
    print(show(torch.autograd.grad(b.sum() if steps % 4 else a.pow(2).sum(), w)[0][0].tolist()))

# A loss is kept before its backward(): in an output object, a dict, a list, an attribute. It has a freed graph from the start; where a guard fails in between, its real one.
# expect: compiled>=0.9, traces>=1
import weakref
from collections import OrderedDict
from dataclasses import dataclass, fields
from typing import Optional

import torch
import torch.nn as nn
import torch.nn.functional as F


@dataclass
class Output(OrderedDict):
    loss: Optional[torch.Tensor] = None
    logits: Optional[torch.Tensor] = None
    hidden: Optional[tuple] = None

    def __post_init__(self):
        for field in fields(self):
            if getattr(self, field.name) is not None:
                self[field.name] = getattr(self, field.name)

    def __setattr__(self, name, value):
        if name in self.keys() and value is not None:
            super().__setitem__(name, value)
        super().__setattr__(name, value)

    def __setitem__(self, key, value):
        super().__setitem__(key, value)
        super().__setattr__(key, value)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Linear(8, 16), nn.Linear(16, 4)

    def forward(self, x, labels):
        hidden = torch.tanh(self.first(x))
        logits = self.second(hidden)
        return Output(loss=F.cross_entropy(logits, labels), logits=logits)


class Run:
    loss = None


def outcome(tensor):
    try:
        tensor.backward()
    except RuntimeError as error:
        return str(error)[:40]
    return "no error"


def objects(net, optimizer, data):
    for i in range(150):
        x, labels = data[i % len(data)]
        optimizer.zero_grad()
        out = net(x, labels)
        if i % 37 == 36:  # nothing of this iteration has gone backward yet
            print(i, out.loss.grad_fn is not None, out["logits"].requires_grad, type(out.loss.grad_fn).__name__)
        out.loss.backward()
        optimizer.step()
    return out


def containers(net, optimizer, data, run, kept):
    for i in range(150):
        x, labels = data[i % len(data)]
        optimizer.zero_grad()
        loss = net(x, labels).loss
        run.loss = loss
        kept["loss"] = loss
        kept["all"].append(loss)
        if i == 101:
            loss = loss * 2  # leaves between the loss and its backward()
        if i == 120:
            print(run.loss.grad_fn.name(), torch.autograd.grad(kept["loss"], [net.second.bias], retain_graph=True)[0].sum().abs().item() < 1e-5)
        loss.backward()
        optimizer.step()


def main():
    torch.manual_seed(0)
    net = Net()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    data = [(torch.randn(12, 8), torch.randint(0, 4, (12,))) for _ in range(3)]
    out = objects(net, optimizer, data)
    print(f"{out.loss.item():.5f}", outcome(out.loss), outcome(out.logits.sum()), list(out))
    run, kept = Run(), {"all": []}
    containers(net, optimizer, data, run, kept)
    print(f"{run.loss.item():.5f}", outcome(run.loss), kept["loss"] is run.loss, len(kept["all"]), kept["all"][-1] is run.loss)
    print(f"{sum(t.item() for t in kept['all']):.4f}", {outcome(t) for t in kept["all"]}, len({id(t) for t in kept["all"]}))
    dead = weakref.ref(kept["all"][3])
    kept["all"].clear()
    print(dead() is None, f"{net.first.weight.abs().sum().item():.4f}")


main()

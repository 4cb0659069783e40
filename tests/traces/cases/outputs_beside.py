# Models that put several results into an object of which a loss needs one: the others have graphs beside the one that backward() frees. Dropped, kept, looked at, used later.
from collections import OrderedDict

import torch
from torch import nn


class Output(OrderedDict):
    def __init__(self, hidden=None, logits=None, pooled=None):
        self.hidden = hidden
        self.logits = logits
        self.pooled = pooled

    def __setattr__(self, name, value):
        super().__setitem__(name, value)
        super().__setattr__(name, value)


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.body, self.head, self.pooler = nn.Linear(6, 6), nn.Linear(6, 3), nn.Linear(6, 2)

    def forward(self, x):
        hidden = torch.tanh(self.body(x))
        return Output(hidden=hidden, logits=self.head(hidden), pooled=torch.tanh(self.pooler(hidden)))


def first(output):
    return output.logits if output.logits is not None else output["hidden"]


torch.manual_seed(3)
x = torch.randn(5, 6)


def train(steps, keep, look):
    model = Model()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    kept, facts = [], []
    for step in range(steps):
        optimizer.zero_grad()
        output = model(x)
        logits = first(output)
        if look and step % 7 == 3:
            facts.append(type(output.pooled.grad_fn).__name__)
        if step % keep == keep - 1:
            kept.append(output)
        del output
        logits.square().mean().backward()
        optimizer.step()
    for output in kept[-3:]:
        facts.append((type(output.pooled.grad_fn).__name__, output["pooled"].requires_grad, len(output)))
        try:
            output.pooled.sum().backward()
        except RuntimeError as error:
            facts.append(str(error)[:60])
        facts.append(model.pooler.bias.grad is None)
    return round(logits.sum().item(), 4), facts


for keep, look in ((1000, False), (1000, True), (9, False), (1, True)):
    print(*train(60, keep, look))


# The variables of functions, by name.
def defaults(function, names):
    places = [function.__code__.co_varnames.index(name) - 1 for name in names if name in function.__code__.co_varnames]
    return places, function.__code__.co_argcount, function.__code__.co_name


model = Model()
with torch.no_grad():
    for step in range(40):
        if step == 25:
            Model.forward.__code__ = (lambda self, x, *mask: {"logits": self.body(x) * 2}).__code__
        found = defaults(Model.forward, ["mask", "x"])
        out = model(x)["logits"] if step >= 25 else model(x).logits
        if step % 12 == 0:
            print(found, round(out.sum().item(), 4))

# Calls of C's that write to objects that the trace has read: what is read behind them is what they wrote.
# expect: compiled>=0.9, traces>=1
import zlib

import torch
from torch import nn

registry = {"a": 1.0, "b": 2.0}
names = {"x"}


class Counter(nn.Module):
    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(3, 3)
        self.calls = 0
        self.scale = 1.0

    def forward(self, x):
        self.calls += 1
        object.__setattr__(self, "scale", self.scale + 0.5)
        y = self.lin(x) * self.scale
        if self.calls % 50 == 0:
            y = y * 2
        self.__dict__["last"] = self.calls
        return y, self.scale, self.last


class Plain:
    value = 0

    def __setattr__(self, name, value):
        super().__setattr__(name, value)
        super().__setattr__(name, self.value + 1)


plain = Plain()
plain.value = 0


def step(i, net, x):
    y, scale, last = net(x)
    registry.setdefault("c", 5.0)
    c = registry.pop("c") + registry.get("c", 0.25)
    registry["d"] = float(i % 3)
    d = registry["d"]
    names.discard("x" if i % 2 else "z")
    inside = "x" in names
    names.add("x")
    local = [1, 2, 3]
    local.insert(0, i % 4)
    local.pop()
    local.extend([7])
    table = {"p": 1}
    table.setdefault("q", i % 5)
    table.pop("p")
    before = plain.value
    plain.value = i % 7
    return torch.tanh(y * c + d), (scale, last, inside, tuple(local), len(local), sorted(table), table["q"], "p" in table, plain.value - before, "c" in registry)


def main():
    torch.manual_seed(0)
    net, x, total, facts = Counter(), torch.randn(2, 3), 0.0, []
    with torch.no_grad():
        for i in range(220):
            y, seen = step(i, net, x)
            total += y.sum().item()
            facts.append(seen)
    print(f"{total:.4f}", net.calls, net.scale, facts[::17], zlib.crc32(repr(facts).encode()))


main()

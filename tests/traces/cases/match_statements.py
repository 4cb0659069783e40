# Match statements on classes, sequences, mappings and literals decide what the loop computes; sets are built beside it.
# expect: compiled>=0.55, traces>=2
# expect-abort: loop_left
from dataclasses import dataclass

import torch


@dataclass
class Scale:
    factor: float


@dataclass
class Shift:
    by: float
    twice: bool = False


class Clip:
    def __init__(self, low, high):
        self.low, self.high = low, high


def apply(step, x):
    match step:
        case Scale(factor):
            return x * factor
        case Shift(by, twice=True):
            return x + 2 * by
        case Shift(by):
            return x + by
        case Clip(low=low, high=high):
            return x.clamp(low, high)
        case ["power", int(n)]:
            return x**n
        case ["blend", float() as weight, *rest]:
            return x * weight + len(rest)
        case {"kind": "tanh", "gain": gain}:
            return torch.tanh(x * gain)
        case {"kind": other}:
            return x - len(other)
        case "relu" | "positive":
            return torch.relu(x)
        case None:
            return x
        case _:
            raise TypeError(step)


def main():
    steps = [Scale(1.5), Shift(0.25), Shift(0.5, True), Clip(-3.0, 3.0), ["power", 2], ["blend", 0.5, 1, 2], {"kind": "tanh", "gain": 0.7},
             {"kind": "none", "more": 1}, "relu", None]
    x = torch.linspace(-1, 1, 5)
    kinds = set()
    sizes = 0
    for i in range(60):
        for step in steps:
            x = apply(step, x)
        seen = {type(step).__name__ for step in steps}
        names = {"a", "b", "c"}
        names.add("d" if i % 2 else "a")
        kinds |= seen
        sizes += len(names) + len({*names, "e"})
        x = x * 0.5 + apply(steps[i % 10], x)
        try:
            x = apply(3.5, x)
        except TypeError:
            x = x + 0.125
    print(x.tolist(), sorted(kinds), sizes)


main()

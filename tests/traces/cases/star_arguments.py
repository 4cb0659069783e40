# f(*generator), f(*list), f(*other iterable), f(**other mapping), dict comprehensions.
# expect: compiled>=0.85, traces>=1
import collections

import torch


def combine(a, b, c=1.0, **rest):
    return (a * c + b).sum() + len(rest)


class Pair:
    def __init__(self, *items):
        self.items = items

    def __iter__(self):
        return iter(self.items)


def main():
    torch.manual_seed(0)
    parts = [torch.randn(8) for _ in range(2)]
    mapping = collections.UserDict(c=2.0, other=3)
    total = 0.0
    for i in range(120):
        scaled = [p * 0.5 for p in parts]
        total += combine(*(p + 1 for p in scaled)).item()
        total += combine(*scaled, c=i).item()
        total += combine(*Pair(*scaled), **mapping).item()
        named = {name: p * 2 for name, p in zip("ab", scaled)}
        total += combine(**named).item() + len(named)
    print(f"{total:.2f}")


main()

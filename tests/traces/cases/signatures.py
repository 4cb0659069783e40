# inspect.signature in an iteration, of functions and methods, whose defaults, annotations and wrappers change on the way.
# expect: compiled>=0.8, traces>=1
import functools
import inspect

import torch


class Layer:
    def chunk(self, x: torch.Tensor, scale: float = 2.0):
        return x * scale

    def forward(self, x):
        return self.chunk(x) if len(inspect.signature(self.chunk).parameters) == 2 else x


def two(x, y=1):
    return x + y


def main():
    torch.manual_seed(0)
    layer, x, total, seen = Layer(), torch.rand(4), 0.0, []
    for i in range(80):
        total += layer.forward(torch.relu(x - 0.1) + 0.5).sum().item()
        text = str(inspect.signature(two)) + str(inspect.signature(layer.chunk))
        if not seen or seen[-1] != text:
            seen.append(text)
        if i == 40:
            two.__defaults__ = (7,)
        if i == 50:
            two.__annotations__["x"] = int
        if i == 60:
            functools.wraps(main)(two)
        if i == 70:
            two.__signature__ = inspect.signature(layer.chunk)
    print(f"{total:.3f}", seen)


main()

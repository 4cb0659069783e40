# match/case on class patterns, literals, guards and sequences interprets a small layer description in each step.
# expect: compiled>=0.5, traces>=1
import torch
from torch import nn


def apply(spec, x):
    match spec:
        case ("scale", float(by) | int(by)):
            return x * by
        case ("act", "relu" | "tanh" as name):
            return getattr(torch, name)(x)
        case {"op": "shift", "by": by, **rest} if not rest:
            return x + by
        case nn.Linear(in_features=n) as layer if n == x.size(-1):
            return layer(x)
        case [first, *others]:
            x = apply(first, x)
            return apply(others, x) if others else x
        case None | []:
            return x
        case _:
            raise TypeError(f"no such layer: {type(spec).__name__}")


torch.manual_seed(50)
program = [nn.Linear(4, 4), ("act", "tanh"), {"op": "shift", "by": 0.1}, [("scale", 2), ("act", "relu")], None]
x = torch.randn(3, 4)
unknown = 0
with torch.no_grad():
    for step in range(45):
        x = apply(program, x) * 0.7
        if step % 15 == 14:
            try:
                apply([nn.Linear(7, 2)], x)
            except TypeError as error:
                unknown += "Linear" in str(error)
        if step == 20:
            program[2]["by"] = -0.05
print(unknown, [f"{v:.4f}" for v in x.sum(0).tolist()])

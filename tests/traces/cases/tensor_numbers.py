# Numbers of tensors asked for by C functions: int(), math's functions, one and two arguments; a root was once the number itself.
# expect: compiled>=0.8, traces>=4
import math

import torch


def table(f, n=40):
    out = []
    for i in range(n):
        x = torch.tensor(i * 0.37) * 1.5 - 2
        out.append(f(x))
    return out


print(table(lambda x: (math.floor(x), math.ceil(x), int(x), float(x) > 1)))
print([f"{v:.4f}" for v in table(lambda x: math.sqrt(abs(x)) + math.exp(-abs(x)))])
print([f"{v:.4f}" for v in table(lambda x: math.atan2(x, x + 1) + math.pow(abs(x), 0.5) + int(x > 1) + int(x.long()))])
print(table(lambda x: (math.isfinite(x), math.isnan(x), bool(x > 0), int((x * 2).round()))))


def wrong(n):
    out = []
    for i in range(n):
        x = torch.ones(1 + i // 30) * i
        try:
            out.append(math.sqrt(x))
        except (TypeError, RuntimeError, ValueError) as error:
            out.append(type(error).__name__)
    return out


print(wrong(36))

# Code objects with hot loops that die: the next one may have the same address, and other constants.
# expect: compiled>=0.5, traces>=5
import types

import torch


def template(n):
    x = torch.ones(4)
    for i in range(n):
        x = x * 0.5 + 1.0
    return x


def made(k):
    constants = tuple(float(k) if c == 1.0 else c for c in template.__code__.co_consts)
    function = types.FunctionType(template.__code__.replace(co_consts=constants), globals())
    print(k, function(30)[0].item())


# One by one: a loop, or calls from C, would be traced as a whole.
made(1)
made(2)
made(3)
made(4)
made(5)
made(6)
made(7)
made(8)

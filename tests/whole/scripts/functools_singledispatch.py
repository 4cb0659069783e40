# functools.singledispatch moves nested batches of tensors, lists, dicts, numbers and None, as collate code does.
# expect: compiled>=0.6, traces>=1
from functools import singledispatch

import torch


@singledispatch
def scale(value, by):
    raise TypeError(f"cannot scale {type(value).__name__}")


@scale.register
def _(value: torch.Tensor, by):
    return value * by


@scale.register(list)
@scale.register(tuple)
def _(value, by):
    return type(value)(scale(item, by) for item in value)


@scale.register(dict)
def _(value, by):
    return {key: scale(item, by) for key, item in value.items()}


@scale.register(int)
@scale.register(float)
def _(value, by):
    return value * by


scale.register(type(None), lambda value, by: None)

torch.manual_seed(17)
total, refused = 0.0, 0
for step in range(40):
    batch = {"x": torch.randn(3, 2), "pair": (torch.ones(2), [torch.zeros(1) + step]), "weight": 2, "none": None}
    if step % 10 == 7:
        batch["bad"] = "text"
    try:
        moved = scale(batch, 0.5)
    except TypeError as error:
        refused += "str" in str(error)
        continue
    total += (moved["x"].abs().sum() + moved["pair"][0].sum() + moved["pair"][1][0][0]).item() * moved["weight"]
print(f"{total:.3f}", refused, moved["none"], type(moved["pair"]).__name__)

# Attributes that lead through Python code of other classes: members of enumerations, descriptors with a Python __get__, properties behind
# object.__getattribute__, output classes that are dicts. Their values, and what they are made of, change on the way.
# expect: compiled>=0.9, traces>=1
# expect-abort: exception
import enum
from collections import OrderedDict
from dataclasses import dataclass, fields
from typing import Optional

import torch


class Mode(str, enum.Enum):
    PLAIN = "plain"
    DOUBLE = "double"
    TRIPLE = "triple"


class Plain(enum.Enum):
    A = 1
    B = 2


class Scaled:
    def __init__(self, factor):
        self.factor = factor

    def __get__(self, instance, owner):
        return self.factor if instance is None else self.factor * instance.gain

    def __set__(self, instance, value):
        self.factor = value


class Lazy:
    def __get__(self, instance, owner):
        if instance.gain > 2:
            raise AttributeError("too much")
        return 0.25


class Config:
    names = {"width": "hidden"}
    scale = Scaled(0.5)
    lazy = Lazy()
    gain = 1.0

    def __init__(self):
        self.hidden = 3
        self.mode = Mode.PLAIN

    def __getattribute__(self, name):
        names = object.__getattribute__(self, "names")
        return object.__getattribute__(self, names.get(name, name))

    def __getattr__(self, name):
        return -1.0

    @property
    def doubled(self):
        return self.hidden * 2


@dataclass
class Output(OrderedDict):
    first: Optional[torch.Tensor] = None
    second: Optional[torch.Tensor] = None
    third: Optional[int] = None

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


def step(config, x):
    y = torch.relu(x * config.scale + config.lazy) * config.doubled
    if config.mode in (Mode.DOUBLE, Mode.TRIPLE) and Plain.A != Plain.B:
        y = y * 2
    if config.mode == Mode.TRIPLE:
        y = y + 1
    out = Output(first=y, third=config.width)
    out.second = torch.tanh(y)
    return out


def main():
    torch.manual_seed(0)
    config, x, kept, total = Config(), torch.randn(4, 4), [], 0.0
    for i in range(200):
        if i == 90:
            config.mode = Mode.DOUBLE
        if i == 120:
            Config.scale.__class__.__get__ = lambda self, instance, owner: 0.125
        if i == 150:
            config.gain = 3.0
        if i == 170:
            config.mode = Mode.TRIPLE
        out = step(config, x)
        total += out.first.sum().item() + out["third"] + len(out)
        kept = [list(out.keys()), list(out.__dict__), type(out).__name__, float(out.second.max()) < 1.01]
    print(f"{total:.3f}", kept)


main()

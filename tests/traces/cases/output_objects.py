# What libraries of models do around their tensors: output objects that are dicts with attributes, registries, classes that only raise, cached warnings.
# expect: compiled>=0.9, traces>=1
import functools
from collections import OrderedDict

import torch

registered, warned, seen = set(), [], {"kept": 0}


class Kind(type):
    """Classes of a metaclass hash as others do."""


class Output(OrderedDict, metaclass=Kind):
    limit = None

    def __init__(self, **parts):
        for name, value in parts.items():
            setattr(self, name, value)
            if self.__dict__.get(name) is not None:
                self[name] = value
        register(type(self))  # with a loss stored that is still to be differentiated

    def __setattr__(self, name, value):
        if name in self.keys() and value is not None:
            super().__setitem__(name, value)
        super().__setattr__(name, value)

    def __setitem__(self, key, value):
        super().__setitem__(key, value)
        super().__setattr__(key, value)

    def __getitem__(self, k):
        if isinstance(k, str):
            return dict(self.items())[k]
        return tuple(self[name] for name in self.keys())[k]


class Wide(Output):
    @property
    def width(self):
        return self._width

    @width.setter
    def width(self, value):
        object.__setattr__(self, "_width", value + 1)


def register(cls):
    if cls in registered:
        return
    registered.add(cls)


def only_raises(name):
    def make(cls, *args):
        raise RuntimeError(f"no {name} here")

    def initialise(self, *args):
        raise RuntimeError("never")
    return type(name, (object,), {"__new__": make, "__init__": initialise})


Missing = only_raises("Missing")


def is_there():
    try:
        return Missing()
    except Exception:
        return False


@functools.lru_cache(None)
def warn_once(text):
    warned.append(text)


def kind_of(x):
    text = str(type(x))
    kinds = [] if not text.startswith("<class 'torch.") else ["pt"]
    kinds.extend([k for k in ("np", "pt", "tf") if k not in kinds])
    return kinds


def step(i, x):
    table = seen
    hidden = torch.tanh(x * 1.5)
    out = Wide(first=hidden, second=None, third=(hidden, i % 3))
    out.width = x.shape[0]
    out.second = torch.relu(hidden)
    out["first"] = out.first + 1
    warn_once(f"shape {x.shape[0]}")
    table.setdefault("steps", 0)
    table["steps"] = table.get("steps") + 1
    if "odd" in table and table.pop("odd", None):
        hidden = hidden * 2
    if is_there():
        hidden = hidden * 0
    return out, hidden[slice(1, 3)], kind_of(hidden), list(out.keys()), out.second is not None, "second" in out.keys(), out.limit


def main():
    torch.manual_seed(0)
    x, kept, total = torch.randn(4, 4), [], 0.0
    for i in range(240):
        if i == 100:
            warn_once.cache_clear()
        if i in (120, 121):
            registered.discard(Wide)
        if i % 60 == 59:
            seen["odd"] = 1
        if i == 180:
            Output.limit = 3
        out, part, kinds, names, has, listed, limit = step(i, x)
        total += out[0].sum().item() + out["third"][1] + part.sum().item()
        if i % 50 == 10:
            kept.append(out)
            kept[-1]["later"] = i
            print(i, names, kinds, has, listed, limit, list(out), out.width, vars(out)["second"].sum().item() >= 0, len(out[:]))
    print(f"{total:.3f}", warned, len(registered), seen, [list(o.keys()) for o in kept], kept[0].later)


main()

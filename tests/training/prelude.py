"""What generated training programs begin with: imports, show(), and the layers and functions that the tables name.

Purpose: program.py copies from here what a program needs (imports and show() always, the other definitions where the program
  names them), so that each program is a script that runs by itself. Inputs: none. Outputs: show() prints all that can be seen
  of a value: type, sizes, strides, version counter and every number of a tensor, with its gradient; modules, optimizers and
  random states by their parts.
Invariants: looking at a value changes nothing about it. Line by line, floats may differ by rounding and all else is exact (judge.py).
Tests: test_tables.py.
"""
import collections
import copy
import functools
import itertools
import math
import random
import zlib

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.optim import lr_scheduler
from torch.utils.checkpoint import checkpoint
from torch.utils.data import DataLoader, TensorDataset


def show(name, value):
    if isinstance(value, torch.Tensor):
        kind = f"{str(value.dtype)[6:]} {list(value.shape)} {'leaf' if value.is_leaf else 'made'}{' requires_grad' if value.requires_grad else ''}"
        if value.is_sparse:
            print(name, kind, "sparse")
            show(name + ".coalesced", value.detach().coalesce().to_dense())
            return
        kind += f" {list(value.stride())} " + ("inference" if value.is_inference() else f"v{value._version}")
        print(name, kind, *map(repr, value.detach().flatten().tolist()))
        if value.is_leaf and value.grad is not None:
            show(name + ".grad", value.grad)
    elif isinstance(value, nn.Module):
        print(name, type(value).__name__, [int(m.training) for m in value.modules()], len(value.state_dict()))
        for key, item in itertools.chain(value.named_parameters(), value.named_buffers()):
            show(f"{name}.{key}", item)
    elif isinstance(value, torch.optim.Optimizer):
        show(name, value.state_dict())
    elif hasattr(value, "get_last_lr"):
        show(name, [getattr(value, "last_epoch", 0), value.get_last_lr()])
    elif isinstance(value, dict):
        print(name, "dict", len(value))
        for key, item in value.items():
            show(f"{name}[{key!r}]", item)
    elif isinstance(value, (list, tuple)):
        if all(type(item) in (int, float, bool, str, type(None)) for item in value):
            print(name, type(value).__name__, value)
        else:
            print(name, type(value).__name__, len(value))
            for index, item in enumerate(value):
                show(f"{name}[{index}]", item)
    elif callable(value) or isinstance(value, torch.amp.GradScaler):
        print(name, type(value).__name__)
    else:
        print(name, type(value).__name__, value)


def show_random():
    """The states of the three generators."""
    for name, state in (("torch", torch.get_rng_state().numpy().tobytes()), ("random", repr(random.getstate()).encode()),
                        ("numpy", repr(np.random.get_state()[2:]).encode() + np.random.get_state()[1].tobytes())):
        print("random state", name, zlib.crc32(state))


class Meter:
    def __init__(self):
        self.reset()

    def reset(self):
        self.sum, self.count = 0.0, 0

    def update(self, value, n=1):
        self.sum += value * n
        self.count += n

    @property
    def average(self):
        return self.sum / max(self.count, 1)

    def __repr__(self):
        return f"{self.sum} {self.count}"


class Fn(nn.Module):
    def __init__(self, function, **parameters):
        super().__init__()
        self.function = function
        for name, value in parameters.items():
            if isinstance(value, nn.Parameter):
                setattr(self, name, value)
            else:
                self.register_buffer(name, value)

    def forward(self, x):
        return self.function(self, x)


class Wrap(nn.Module):
    def __init__(self, inner, function):
        super().__init__()
        self.inner, self.function = inner, function

    def forward(self, x):
        return self.function(self.inner, x)


class Residual(nn.Module):
    def __init__(self, inner):
        super().__init__()
        self.inner = inner

    def forward(self, x):
        return x + self.inner(x)


class Looped(nn.Module):
    def __init__(self, layers):
        super().__init__()
        self.layers = layers

    def forward(self, x):
        for layer in (self.layers.values() if isinstance(self.layers, nn.ModuleDict) else self.layers):
            x = layer(x) * 0.9
        return x


class Scaled(nn.Module):
    def __init__(self, scales):
        super().__init__()
        self.scales = scales

    def forward(self, x):
        for scale in (self.scales.values() if isinstance(self.scales, nn.ParameterDict) else self.scales):
            x = x * scale
        return x


class Folded(nn.Module):
    def __init__(self, size):
        super().__init__()
        self.size = size

    def forward(self, x):
        side = x.shape[2]
        columns = nn.Unfold((self.size, 1))(x.unsqueeze(-1))
        return nn.Fold((side, 1), (self.size, 1))(columns).squeeze(-1)


class Unpooled(nn.Module):
    def __init__(self, pool, unpool):
        super().__init__()
        self.pool, self.unpool = pool, unpool

    def forward(self, x):
        small, places = self.pool(x)
        return self.unpool(small.tanh(), places, output_size=x.shape)


class Packed(nn.Module):
    def __init__(self, inner):
        super().__init__()
        self.inner = inner

    def forward(self, x):
        lengths = [max(1, x.shape[1] - k % 2) for k in range(len(x))]
        lengths[0] = x.shape[1]
        packed = nn.utils.rnn.pack_padded_sequence(x, lengths, batch_first=True, enforce_sorted=False)
        return nn.utils.rnn.pad_packed_sequence(self.inner(packed)[0], batch_first=True)[0]


class Unrolled(nn.Module):
    def __init__(self, cell):
        super().__init__()
        self.cell = cell

    def forward(self, x):
        state, outputs = None, []
        for piece in x.unbind(1):
            state = self.cell(piece, state)
            outputs.append(state[0] if isinstance(state, tuple) else state)
        return torch.stack(outputs, 1)


class Doubled(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x.abs()

    @staticmethod
    def backward(ctx, grad):
        x, = ctx.saved_tensors
        return 2 * x.abs() * grad


class Clipped(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, limit):
        ctx.limit = limit
        ctx.set_materialize_grads(False)
        return x.clamp(-limit, limit)

    @staticmethod
    def backward(ctx, grad):
        return None if grad is None else grad.clamp(-ctx.limit, ctx.limit), None


class Rounded(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.shape = x.shape
        return x + 0.125

    @staticmethod
    def backward(ctx, grad):
        return grad.reshape(ctx.shape) * 0.5


class Swapped(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, y):
        ctx.save_for_backward(x, y)
        ctx.mark_non_differentiable()
        return x * y, x + y

    @staticmethod
    def backward(ctx, one, two):
        x, y = ctx.saved_tensors
        return one * y + two, one * x + two


class Halved(nn.Module):
    def forward(self, weight):
        return (weight + weight.flip(0)) / 2


def parametrized(module):
    nn.utils.parametrize.register_parametrization(module, "weight", Halved())
    return module


def pruned(module):
    import torch.nn.utils.prune
    torch.nn.utils.prune.l1_unstructured(module, "weight", amount=0.3)
    return module


def overwritten(x, place):
    y = x.clone()
    y[:, place] = y[:, place] * 0.5
    y[:1].mul_(0.9)
    return y


def checkpointed(function, x):
    return checkpoint(function, x, use_reentrant=False)

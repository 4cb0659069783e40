"""Each operator, as torch.testing._internal.common_methods_invocations describes it, in loops: with gradients, in
place, into given results.

Inputs: op_db. Outputs: a test for each operator and dtype; its text has results and gradients of each round.
Tests: tests/torch_own/test_runner.py.
"""

import itertools
import unittest

import torch
from torch.testing._internal.common_methods_invocations import op_db

from common import ROUNDS, attempt, clones, failure, inputs, loss_of, seed, show, tensors

DTYPES = (torch.float32, torch.int64, torch.bool, torch.complex64)
SAMPLES = 4


def with_gradients(operator, sample, leaves):
    lines = []
    for _ in range(ROUNDS):
        for leaf in leaves:
            leaf.grad = None
        outputs = operator(sample.input, *sample.args, **sample.kwargs)
        loss = loss_of(outputs)
        if loss is not None:
            loss.backward()
        lines.append(outputs)
    return [*map(show, lines), *(show(leaf.grad) for leaf in leaves)]


def without(operator, sample, leaves):
    lines = []
    with torch.no_grad():
        for _ in range(ROUNDS):
            lines.append(operator(sample.input, *sample.args, **sample.kwargs))
    return map(show, lines)


def in_place(operator, sample, leaves):
    lines = []
    with torch.no_grad():
        for _ in range(ROUNDS):
            target = clones(sample.input)
            operator.inplace_variant(target, *sample.args, **sample.kwargs)
            lines.append(target)
    return map(show, lines)


def into(operator, sample, leaves):
    lines = []
    with torch.no_grad():
        first = operator(sample.input, *sample.args, **sample.kwargs)
        given = clones(first) if isinstance(first, torch.Tensor) else tuple(map(clones, first))
        for _ in range(ROUNDS):
            operator(sample.input, *sample.args, **sample.kwargs, out=given)
            lines.append(clones(given))
    return map(show, lines)


class Operators(unittest.TestCase):
    def check(self, operator, dtype):
        self.shown = ""
        lines = []
        floating = dtype.is_floating_point or dtype.is_complex
        gradients = operator.supports_autograd and floating and dtype in operator.supported_backward_dtypes("cpu")
        ways = [with_gradients if gradients else without]
        if operator.inplace_variant is not None:
            ways.append(in_place)
        if operator.supports_out:
            ways.append(into)
        seed(operator.name)
        try:
            made = operator.sample_inputs("cpu", dtype, requires_grad=gradients)
            samples = list(itertools.islice(made, inputs(SAMPLES)))
        except Exception as error:  # of what makes samples
            self.skipTest(failure(error))
        for number, sample in enumerate(samples):
            leaves = [leaf for leaf in tensors((sample.input, sample.args, sample.kwargs)) if leaf.requires_grad]
            for way in ways:
                seed(f"{operator.name} {number}")
                attempt(lines, f"{number} {way.__name__}", way, operator, sample, leaves)
        self.shown = "\n".join(lines)


def add(operator, dtype):
    name = "test_" + f"{operator.name}_{operator.variant_test_name}".replace(".", "_").strip("_") + f"_{str(dtype)[6:]}"
    setattr(Operators, name, lambda self: self.check(operator, dtype))


for one in op_db:
    for kind in DTYPES:
        if kind in one.supported_dtypes("cpu"):
            add(one, kind)

"""Each module of torch.nn, as torch.testing._internal.common_modules describes it, in loops: training, evaluation,
both in turn, copies, pickles, states that are kept and read again.

Inputs: module_db. Outputs: a test for each module, dtype and mode; its text has losses, results, gradients, buffers.
Tests: tests/torch_own/test_runner.py.
"""

import copy
import pickle
import unittest

import torch
from torch.testing._internal.common_modules import module_db

from common import ROUNDS, attempt, clones, failure, inputs, loss_of, seed, show, tensors

DTYPES = (torch.float32, torch.float64)
INPUTS = 6


def results_of(module, leaves, outputs):
    yield "result " + show(outputs)
    for number, leaf in enumerate(leaves):
        yield f"input {number} {show(leaf.grad)}"
    for name, parameter in module.named_parameters():
        yield f"{name} {show(parameter)} {show(parameter.grad)}"
    for name, buffer in module.named_buffers():
        yield f"{name} {show(buffer)}"


def train(module, arguments, named, leaves):
    losses = []
    for i in range(ROUNDS):
        if i % 3 == 0:
            module.zero_grad()
            for leaf in leaves:
                leaf.grad = None
        outputs = module(*clones(arguments), **clones(named))
        loss = loss_of(outputs)
        if loss is not None:
            loss.backward()
            with torch.no_grad():
                for parameter in module.parameters():
                    if parameter.grad is not None:
                        parameter -= 0.01 * parameter.grad
            losses.append(f"{loss.item():.5e}")
    return ["losses " + " ".join(losses), *results_of(module, leaves, outputs)]


def infer(module, arguments, named, leaves):
    lines = []
    with torch.no_grad():
        for _ in range(ROUNDS):
            outputs = module(*arguments, **named)
            lines.append(outputs)
    return [show(one) for one in lines]


def in_turn(module, arguments, named, leaves):
    """Training and evaluation one after the other; the state of one round comes back in a later one."""
    lines, kept = [], None
    for i in range(ROUNDS):
        module.train(i % 2 == 0)
        outputs = module(*clones(arguments), **clones(named))
        if i == 2:
            kept = copy.deepcopy(module.state_dict())
        if i == 5:
            module.load_state_dict(kept)
        loss = loss_of(outputs)
        if loss is not None:
            loss.backward()
        lines.append(show(outputs))
    return [*lines, *results_of(module, leaves, outputs)]


def copied(module, arguments, named, leaves):
    lines = []
    for i in range(ROUNDS):
        other = copy.deepcopy(module) if i % 2 else pickle.loads(pickle.dumps(module))
        outputs = other(*clones(arguments), **clones(named))
        loss = loss_of(outputs)
        if loss is not None:
            loss.backward()
        lines += [show(outputs), show([parameter.grad for parameter in other.parameters()])]
    return lines


class Modules(unittest.TestCase):
    def check(self, info, dtype, training):
        self.shown = ""
        lines = []
        seed(info.name)
        try:
            found = info.module_inputs_func(info, device="cpu", dtype=dtype, requires_grad=True, training=training)
            found = found[:inputs(INPUTS)]
        except TypeError as error:  # of what the description asks of its caller
            self.skipTest(failure(error))
        for number, one in enumerate(found):
            for way in (train, infer, in_turn, copied):
                seed(f"{info.name} {number}")
                label = f"{number} {way.__name__}"
                try:
                    made = one.constructor_input
                    module = info.module_cls(*made.args, **made.kwargs).to(dtype).train(training)
                    arguments, named = copy.deepcopy((one.forward_input.args, one.forward_input.kwargs))
                except Exception as error:
                    lines.append(f"{label} {failure(error)}")
                    continue
                leaves = [leaf for leaf in tensors((arguments, named)) if leaf.requires_grad]
                attempt(lines, label, way, module, arguments, named, leaves)
        self.shown = "\n".join(lines)


def add(info, dtype, training):
    name = f"test_{info.formatted_name}_{str(dtype)[6:]}_{'train' if training else 'eval'}"
    setattr(Modules, name, lambda self: self.check(info, dtype, training))


for one in module_db:
    for kind in DTYPES[:inputs(len(DTYPES))]:
        if kind in one.dtypes:
            for flag in (True, False) if one.train_and_eval_differ else (True,):
                add(one, kind, flag)

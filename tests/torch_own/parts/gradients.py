"""torch.autograd.gradcheck of each operator and module that torch.testing._internal describes, several times over:
its loops over elements get hot, and what is right the first time must be right from traces.

Inputs: op_db, module_db. Outputs: a test for each; its text says what gradcheck said.
Tests: tests/torch_own/test_runner.py.
"""

import itertools
import unittest

import torch
from torch.autograd import gradcheck, gradgradcheck
from torch.testing._internal.common_methods_invocations import op_db
from torch.testing._internal.common_modules import module_db

from common import attempt, failure, inputs, seed, tensors

TIMES = 3
SAMPLES = 2
ELEMENTS = 30  # of all inputs of a sample


def small(leaves):
    return leaves and sum(leaf.numel() for leaf in leaves) <= ELEMENTS


def checks(function, leaves, second, tolerance):
    said = []
    for _ in range(TIMES):
        said.append(gradcheck(function, leaves, nondet_tol=tolerance))
        if second:
            said.append(gradgradcheck(function, leaves, nondet_tol=tolerance, gen_non_contig_grad_outputs=True))
    return map(str, said)


class Gradients(unittest.TestCase):
    def operator(self, operator):
        self.shown = ""
        lines = []
        seed(operator.name)
        try:
            samples = list(itertools.islice(operator.sample_inputs("cpu", torch.float64, requires_grad=True), 20))
        except Exception as error:
            self.skipTest(failure(error))
        for number, sample in enumerate(samples):
            leaves = [leaf for leaf in tensors((sample.input, sample.args, sample.kwargs)) if leaf.requires_grad]
            if not small(leaves) or len(lines) >= inputs(SAMPLES):
                continue

            def function(*_):
                out = operator.gradcheck_wrapper(operator, sample.input, *sample.args, **sample.kwargs)
                return sample.output_process_fn_grad(out)

            seed(f"{operator.name} {number}")
            second, tolerance = operator.supports_gradgrad, operator.gradcheck_nondet_tol
            attempt(lines, str(number), checks, function, leaves, second, tolerance)
        self.shown = "\n".join(lines)

    def module(self, info):
        self.shown = ""
        lines = []
        seed(info.name)
        found = info.module_inputs_func(info, device="cpu", dtype=torch.float64, requires_grad=True, training=True)
        for number, one in enumerate(found):
            try:
                module = info.module_cls(*one.constructor_input.args, **one.constructor_input.kwargs).double()
            except Exception as error:
                lines.append(failure(error))
                continue
            given = (one.forward_input.args, one.forward_input.kwargs)
            leaves = [leaf for leaf in tensors(given) if leaf.requires_grad]
            leaves += list(module.parameters())
            if not small(leaves) or len(lines) >= inputs(SAMPLES):
                continue

            def function(*_):
                torch.manual_seed(number)
                out = module(*one.forward_input.args, **one.forward_input.kwargs)
                return tuple(t for t in tensors(out) if t.is_floating_point())

            attempt(lines, str(number), checks, function, leaves, info.supports_gradgrad, info.gradcheck_nondet_tol)
        self.shown = "\n".join(lines)


def add(kind, name, one):
    setattr(Gradients, f"test_{kind}_{name}", lambda self: getattr(self, kind)(one))


for described in op_db:
    if described.supports_autograd and torch.float64 in described.supported_backward_dtypes("cpu"):
        add("operator", f"{described.name}_{described.variant_test_name}".replace(".", "_").strip("_"), described)
for described in module_db:
    if torch.float64 in described.dtypes:
        add("module", described.formatted_name, described)

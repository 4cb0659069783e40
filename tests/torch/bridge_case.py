"""What the suites of this folder share: the driver module, and replaying a recorded step mechanically.

Inputs: DYNVM_TEST_DRIVER (the driver module's file) and DYNVM_TEST_BRIDGE (libdynvm_torch.so), set by CTest.
Outputs: `driver`, `record`, `Replay`. Where torch is missing, importing this skips the suite.
"""

import importlib.util
import os
import unittest

try:
    import torch
except ImportError:
    raise unittest.SkipTest("torch is not installed")


def _load_driver():
    spec = importlib.util.spec_from_file_location("bridge_driver", os.environ["DYNVM_TEST_DRIVER"])
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    module.load(os.environ["DYNVM_TEST_BRIDGE"])
    return module


driver = _load_driver()
# Threads that wait for each other would make the suite as slow as the machine is busy.
torch.set_num_threads(1)


def record(function, recorder=None):
    """(recorder, records handle, list of records as dicts, the function's result)."""
    recorder = recorder or driver.recorder()
    driver.enable(recorder)
    try:
        result = function()
    finally:
        driver.disable(recorder)
    records = driver.take(recorder)
    return recorder, records, driver.list_records(records), result


def names(ops):
    return [op["name"] for op in ops]


def numbers(ops):
    """{(op, argument, element): value} of every number that could be another one in the next iteration."""
    out = {}
    for i, op in enumerate(ops):
        for j, arg in enumerate(op["args"]):
            if arg["kind"] == "float":
                out[i, j, -1] = arg["f"]
            elif arg["kind"] == "number":
                out[i, j, -1] = arg["f"] if arg["dtype"].startswith("f") else arg["i"]
            elif arg["kind"] == "int":
                out[i, j, -1] = arg["i"]
            elif arg["kind"] == "floats":
                out.update({(i, j, k): v for k, v in enumerate(arg["floats"])})
    return out


def changing(lists):
    """Places whose numbers differ between recordings of the same operations."""
    first = numbers(lists[0])
    return sorted(place for place, value in first.items() if any(numbers(other)[place] != value for other in lists[1:]))


def wrap_spec(id, requires_grad=False, is_leaf=True, grad_fn="", output_nr=0, freed=False, forward=()):
    return (id, requires_grad, is_leaf, grad_fn, output_nr, freed, list(forward))


def bitwise(a, b):
    return a.dtype == b.dtype and a.shape == b.shape and a.stride() == b.stride() and torch.equal(
        a.detach().contiguous().view(torch.uint8) if a.dim() else a.detach().reshape(1).view(torch.uint8),
        b.detach().contiguous().view(torch.uint8) if b.dim() else b.detach().reshape(1).view(torch.uint8))


class Replay:
    """A recorded step as a program. `inputs`: {recorder id: tensor} to bind before each run."""

    def __init__(self, recorder, records, fresh=(), scalars=(), wraps=(), open=()):
        self.program = driver.build(recorder, records, list(fresh), list(scalars), list(wraps), list(open))
        self.inputs = {}

    def bind(self, inputs=None):
        for id, tensor in (inputs if inputs is not None else self.inputs).items():
            status = driver.bind(self.program, id, tensor)
            if status:
                raise ValueError(f"input {id} does not fit: {driver.last_refusal()}")

    def run(self, scalars=(), inputs=None):
        self.bind(inputs)
        driver.run(self.program, list(scalars))

    def wrap(self, number):
        return driver.wrap(self.program, number)

    def end(self):
        driver.end_iteration(self.program)

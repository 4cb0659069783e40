"""What the tests of this folder share: fresh loops, and texts that say what values came out.

Inputs: DYNVM_TEST_INPUTS: how many inputs of each description are tried (empty: as many as the file says).
Outputs: texts for a test's attribute `shown`, which tests/lib/verdicts.py compares with python's, floats within
  rounding.
Invariants: a loop's function is made anew for each input, so that each has traces of its own; random numbers begin
  with a seed that the test's name gives; an exception is text like any other result.
Tests: tests/torch_own/test_runner.py.
"""

import os
import types
import zlib

import torch

ROUNDS = 8         # of each loop: with --hot=2 the second or third is recorded, the others run in its trace
SHOWN = 6          # elements of each tensor that are shown singly
WORDS = 160        # characters of an exception
PLAIN = (int, float, complex, str, bool, type(None), torch.Size, torch.dtype)  # shown as they are
NOTHING = 50.0     # times a dtype's precision: what is less may be nothing, rounded


def inputs(usual):
    return int(os.environ.get("DYNVM_TEST_INPUTS") or usual)


def fresh(function):
    """The function with a code object of its own."""
    code = function.__code__.replace()
    made = types.FunctionType(code, function.__globals__, function.__name__, function.__defaults__,
                              function.__closure__)
    made.__kwdefaults__ = function.__kwdefaults__
    return made


def tensors(value):
    """All tensors in nested tuples, lists and dicts."""
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, dict):
        for one in value.values():
            yield from tensors(one)
    elif isinstance(value, (tuple, list)):
        for one in value:
            yield from tensors(one)


def clones(value):
    """The same nesting with cloned tensors, which keep their graphs."""
    if isinstance(value, torch.Tensor):
        return value.clone()
    if isinstance(value, dict):
        return {key: clones(one) for key, one in value.items()}
    if type(value) in (tuple, list):
        return type(value)(clones(one) for one in value)
    return value


def loss_of(value):
    """One number of all floating results that have a graph, or None: distances from a ramp, whose gradient does not
    vanish behind what normalises."""
    total = None
    for one in tensors(value):
        if one.requires_grad and one.numel():
            one = one.to_dense() if one.layout != torch.strided else one
            away = one - torch.linspace(-1, 1, one.numel(), dtype=one.dtype).view(one.shape)
            part = (away * away.conj()).real.mean() if one.is_complex() else (away * away).mean()
            total = part if total is None else total + part
    return total


def show_floats(value):
    """Elements as shares of their root mean square, whose last digit may be rounded; sums that cancel nothing."""
    flat = value.reshape(-1).double()
    usual = flat[flat.isfinite()]
    scale = float(usual.square().mean().sqrt()) if usual.numel() else 0.0
    if usual.numel() == flat.numel() and scale < NOTHING * torch.finfo(value.dtype).eps:
        return "nothing"
    weights = torch.linspace(0.5, 1.5, flat.numel(), dtype=torch.float64)
    sums = [float((flat * sign).clamp(min=0).mul(weights).mean()) if flat.numel() else 0.0 for sign in (1, -1)]
    singly = " ".join(f"{float(x) / (scale or 1.0):.3f}" for x in flat[:SHOWN])
    return f"rms {scale:.4e} sums {sums[0]:.4e} {sums[1]:.4e} | {singly}"


def show(value):
    """A line that says what a value is."""
    if isinstance(value, torch.Tensor):
        with torch.no_grad():
            about = f"{str(value.dtype)[6:]} {list(value.shape)}"
            if value.layout != torch.strided or value.is_quantized:
                return f"{about} {value.layout}"
            kind = " graph" if value.grad_fn is not None else " leaf" if value.requires_grad else ""
            about += f" {list(value.stride())}{kind} "
            value = value.detach().resolve_conj().resolve_neg()
            if value.is_complex():
                value = torch.view_as_real(value)
            if value.is_floating_point():
                return about + show_floats(value)
            flat = value.reshape(-1)
            return about + f"sum {int(flat.long().sum())} | " + " ".join(str(x.item()) for x in flat[:SHOWN])
    if isinstance(value, (tuple, list)):
        return f"{type(value).__name__}(" + "; ".join(show(one) for one in value) + ")"
    if isinstance(value, dict):
        return "{" + "; ".join(f"{key}: {show(one)}" for key, one in value.items()) + "}"
    return repr(value) if isinstance(value, PLAIN) else type(value).__name__


def failure(error):
    return f"{type(error).__name__}: {str(error).strip().splitlines()[0][:WORDS] if str(error).strip() else ''}"


def seed(name):
    torch.manual_seed(zlib.crc32(name.encode()))


def attempt(lines, label, function, *arguments):
    """Adds what function(*arguments) gives, line by line, or its exception."""
    try:
        found = fresh(function)(*arguments)
    except Exception as error:
        found = [failure(error)]
    lines.extend(f"{label} {line}" for line in found)

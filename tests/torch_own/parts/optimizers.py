"""Each optimizer, as torch.testing._internal.common_optimizers describes it, in loops: every option, its forms
(foreach, fused, ...), schedulers, states that are kept and read again.

Inputs: optim_db. Outputs: a test for each optimizer and form; its text has losses, parameters and states.
Invariants: numbers are doubles: some of these runs diverge or divide by nearly nothing, which makes single
  precision's rounding visible.
Tests: tests/torch_own/test_runner.py.
"""

import copy
import unittest

import torch
from torch.optim.lr_scheduler import ReduceLROnPlateau
from torch.testing._internal.common_optimizers import optim_db

from common import attempt, failure, inputs, seed, show

ROUNDS = 12
ROUNDS_OF_SEARCHES = 4  # of optimizers that iterate themselves: with more they arrive, and only rounding is left
INPUTS = 40
SCHEDULERS = 20


def model_of(sparse):
    if sparse:
        return torch.nn.Sequential(torch.nn.Embedding(7, 4, sparse=True)).double(), torch.tensor([1, 3, 3, 5])
    model = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.Tanh(), torch.nn.Linear(4, 2))
    return model.double(), torch.randn(5, 3).double()


def steps(info, options, schedulers):
    model, data = model_of(info.only_supports_sparse_grads)
    optimizer = info.optim_cls(model.parameters(), **options)
    schedulers = [make(optimizer) for make in schedulers]
    losses, kept = [], None
    rounds = ROUNDS_OF_SEARCHES if info.step_requires_closure else ROUNDS
    for i in range(rounds):
        def closure():
            optimizer.zero_grad(set_to_none=i % 2 == 0)
            loss = (model(data) - 0.5).square().mean()
            loss.backward()
            return loss

        if info.step_requires_closure:
            loss = optimizer.step(closure)
        else:
            loss = closure()
            optimizer.step()
        for scheduler in schedulers:
            scheduler.step(loss.item()) if isinstance(scheduler, ReduceLROnPlateau) else scheduler.step()
        if i == rounds // 3:
            kept = copy.deepcopy(optimizer.state_dict())
        if i == 2 * rounds // 3 and not schedulers:
            optimizer.load_state_dict(kept)
        losses.append(f"{loss.item():.5e}")
    groups = [{key: value for key, value in group.items() if key != "params"} for group in optimizer.param_groups]
    return ["losses " + " ".join(losses), "groups " + show(groups), "state " + show(list(optimizer.state.values())),
            *(f"{name} {show(parameter)}" for name, parameter in model.named_parameters())]


def groups_in_turn(info, options, schedulers):
    """Two groups, of which one's rate changes by hand; a parameter is left out now and then."""
    model, data = model_of(info.only_supports_sparse_grads)
    parameters = list(model.parameters())
    groups = [{"params": parameters[:1], "lr": 0.02}, {"params": parameters[1:]}]
    optimizer = info.optim_cls([group for group in groups if group["params"]], **options)
    for i in range(ROUNDS):
        optimizer.zero_grad()
        (model(data) - 0.5).square().mean().backward()
        if i % 4 == 3:
            parameters[-1].grad = None
        optimizer.param_groups[0]["lr"] *= 0.9
        optimizer.step()
    return ["state " + show(list(optimizer.state.values())), *(show(parameter) for parameter in parameters)]


class Optimizers(unittest.TestCase):
    def check(self, info, form):
        self.shown = ""
        lines = []
        for number, one in enumerate(info.optim_inputs_func("cpu")[:inputs(INPUTS)]):
            options = {**one.kwargs, **({form: True} if form else {})}
            seed(f"{info.name} {number}")
            attempt(lines, f"{number} {one.desc} steps", steps, info, options, ())
            if not info.step_requires_closure and info.supports_param_groups:
                attempt(lines, f"{number} {one.desc} groups", groups_in_turn, info, options, ())
        for number, schedulers in enumerate(info.scheduler_inputs[:inputs(SCHEDULERS)] if not form else ()):
            seed(f"{info.name} {number}")
            options = {} if info.only_supports_sparse_grads else {"lr": 0.05}
            attempt(lines, f"scheduler {number}", steps, info, options, schedulers)
        self.shown = "\n".join(lines)


def add(info, form):
    setattr(Optimizers, f"test_{info.name}_{form or 'plain'}", lambda self: self.check(info, form))


for one in optim_db:
    for kind in ("", "foreach", "differentiable", "fused"):
        if not kind or kind in one.supported_impls:
            add(one, kind)

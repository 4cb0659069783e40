# Namedtuples as batches and as states: _replace, defaults, _asdict, unpacking, a NamedTuple class with a method.
# expect: compiled>=0.75, traces>=1
from collections import namedtuple
from typing import NamedTuple

import torch

Batch = namedtuple("Batch", "inputs targets weights", defaults=(None,))


class State(NamedTuple):
    w: torch.Tensor
    step: int = 0
    loss: float = 0.0

    def advance(self, gradient, loss):
        return self._replace(w=self.w - 0.1 * gradient, step=self.step + 1, loss=0.9 * self.loss + 0.1 * loss)


torch.manual_seed(56)
x = torch.randn(8, 3)
batches = [Batch(x, x.sum(1)), Batch(x * 2, x.sum(1) * 2, torch.linspace(0.5, 1, 8))]
state = State(torch.zeros(3))
for step in range(50):
    inputs, targets, weights = batches[step % 2]
    error = inputs @ state.w - targets
    if weights is not None:
        error = error * weights
    state = state.advance(inputs.t() @ error / len(inputs), (error * error).mean().item())
print(state._fields, state.step, f"{state.loss:.5f}", [f"{v:.4f}" for v in state._asdict()["w"].tolist()])
print(Batch._field_defaults, batches[0].weights, state[1] == state.step)

# A model with custom __getstate__ is pickled and unpickled in the loop; the copy takes over at times.
# expect: compiled>=0.5, traces>=1
import pickle

import torch
from torch import nn


class Tracker(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(4, 4)
        self.register_buffer("steps", torch.tensor(0))
        self.cache = {"big": 1}

    def forward(self, x):
        self.steps += 1
        self.cache["last"] = x.shape
        return torch.tanh(self.layer(x)) * (1 + 0.01 * self.steps)

    def __getstate__(self):
        state = self.__dict__.copy()
        state["cache"] = {}
        return state


torch.manual_seed(161)
model = Tracker()
x = torch.randn(3, 4)
copies = 0
with torch.no_grad():
    for step in range(60):
        x = 0.9 * model(x) + 0.05
        if step % 20 == 19:
            clone = pickle.loads(pickle.dumps(model))
            assert clone.cache == {} and torch.equal(clone.layer.weight, model.layer.weight)
            model, copies = clone, copies + 1
print(copies, model.steps.item(), f"{x.sum().item():.5f}", sorted(model.cache))

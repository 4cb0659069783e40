# A wrapper around a model that forwards unknown attributes with __getattr__ and intercepts some, as parallel wrappers do.
# expect: compiled>=0.35, traces>=1
import torch
from torch import nn


class Wrapper(nn.Module):
    def __init__(self, module):
        super().__init__()
        self.module = module
        self.lookups = 0

    def __getattr__(self, name):
        try:
            return super().__getattr__(name)
        except AttributeError:
            return getattr(super().__getattr__("module"), name)

    def forward(self, *args):
        self.lookups += 1
        return self.module(*args) * self.gain + self.offset


class Inner(nn.Module):
    gain = 2.0

    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(3, 3)
        self.register_buffer("offset", torch.tensor(0.5))

    def forward(self, x):
        return torch.tanh(self.layer(x))


torch.manual_seed(63)
model = Wrapper(Inner())
x = torch.randn(4, 3)
with torch.no_grad():
    for step in range(50):
        x = 0.5 * x + 0.3 * model(x)
        if step == 25:
            model.module.gain = 1.0
try:
    model.missing
except AttributeError as error:
    print(error)
print(model.lookups, model.layer is model.module.layer, f"{x.sum().item():.5f}")

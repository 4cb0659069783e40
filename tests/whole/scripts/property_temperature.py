# A module whose properties compute from its parameters, with a setter that checks what it is given.
# expect: compiled>=0.7, traces>=1
import math

import torch
from torch import nn


class Classifier(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(4, 3)
        self._temperature = 1.0

    @property
    def temperature(self):
        return self._temperature

    @temperature.setter
    def temperature(self, value):
        if value <= 0:
            raise ValueError(f"temperature must be positive, not {value}")
        self._temperature = float(value)

    @property
    def weight_norm(self):
        return self.linear.weight.norm(dim=1)

    def forward(self, x):
        return (self.linear(x) / self.weight_norm / self.temperature).softmax(-1)


torch.manual_seed(10)
model = Classifier()
x = torch.randn(6, 4)
entropy, refused = [], []
with torch.no_grad():
    for step in range(48):
        try:
            model.temperature = 2.0 - step / 20 if step % 4 == 0 else model.temperature
        except ValueError as error:
            refused.append(str(error))
        p = model(x)
        entropy.append(-(p * p.log()).sum(-1).mean().item())
print(refused)
print([f"{e:.4f}" for e in entropy[::6]], f"{math.fsum(entropy):.4f}")

# cached_property holds a derived matrix until the weights change and the cache is deleted.
# expect: compiled>=0.75, traces>=1
from functools import cached_property

import torch
from torch import nn


class Whitening(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.factor = nn.Parameter(torch.randn(width, width))
        self.computed = 0

    @cached_property
    def inverse(self):
        self.computed += 1
        gram = self.factor @ self.factor.t() + torch.eye(self.factor.size(0))
        return torch.linalg.inv(gram)

    def update(self, gradient):
        with torch.no_grad():
            self.factor -= gradient
        self.__dict__.pop("inverse", None)

    def forward(self, x):
        return torch.einsum("bi,ij,bj->b", x, self.inverse, x)


torch.manual_seed(18)
model = Whitening(4)
x = torch.randn(6, 4)
sums = []
with torch.no_grad():
    for step in range(50):
        value = model(x * (1 + 0.01 * step)).sum()
        sums.append(value.item())
        if step % 20 == 19:
            model.update(0.05 * torch.sign(model.factor))
print(model.computed, "inverse" in vars(model), [f"{s:.4f}" for s in sums[::10]])

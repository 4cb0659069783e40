# Decorators with functools.wraps around forward and helpers: call counts, shape checks with arguments, stacked.
# expect: compiled>=0.7, traces>=1
import functools

import torch
from torch import nn


def counted(function):
    @functools.wraps(function)
    def wrapper(*args, **kwargs):
        wrapper.calls += 1
        return function(*args, **kwargs)
    wrapper.calls = 0
    return wrapper


def expects(*dims):
    def decorate(function):
        @functools.wraps(function)
        def wrapper(self, x, *args):
            if x.dim() not in dims:
                raise TypeError(f"{function.__name__} wants {dims} dimensions, not {x.dim()}")
            return function(self, x, *args)
        return wrapper
    return decorate


class Pool(nn.Module):
    def __init__(self):
        super().__init__()
        self.score = nn.Linear(4, 1)

    @expects(2, 3)
    @counted
    def forward(self, x, power=1.0):
        """Attention pooling."""
        weights = self.score(x).softmax(dim=-2) ** power
        return (weights * x).sum(-2)


torch.manual_seed(15)
pool = Pool()
total, wrong = torch.zeros(4), []
with torch.no_grad():
    for step in range(40):
        total = total + pool(torch.randn(5, 4), 1.0 + step % 2)
        if step % 13 == 0:
            try:
                pool(torch.ones(4))
            except TypeError as error:
                wrong.append(str(error))
print(Pool.forward.__name__, Pool.forward.__doc__, Pool.forward.__wrapped__.calls, wrong)
print([f"{v:.4f}" for v in total.tolist()])

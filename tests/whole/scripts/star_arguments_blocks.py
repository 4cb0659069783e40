# *args and **kwargs forwarded through three layers of wrappers, with the caller's extra keywords taken out on the way.
# expect: compiled>=0.8, traces>=1
import torch
from torch import nn


class Attention(nn.Module):
    def forward(self, query, key, value, *, scale=None, bias=None, **ignored):
        scores = query @ key.transpose(-1, -2) * (scale if scale is not None else query.size(-1) ** -0.5)
        if bias is not None:
            scores = scores + bias
        return scores.softmax(-1) @ value, sorted(ignored)


class Residual(nn.Module):
    def __init__(self, inner):
        super().__init__()
        self.inner = inner

    def forward(self, *inputs, alpha=1.0, **kwargs):
        out, extra = self.inner(*inputs, **kwargs)
        return inputs[0] + alpha * out, extra


def call(function, /, *args, times=1, **kwargs):
    for _ in range(times):
        first, *rest = args
        first, extra = function(first, *rest, **kwargs)
        args = (first, *rest)
    return first, extra


torch.manual_seed(20)
block = Residual(Attention())
tensors = [torch.randn(2, 3, 4) for _ in range(3)]
options = {"scale": 0.3, "bias": torch.eye(3)}
total = 0.0
for step in range(40):
    extra_options = {"cache": None} if step % 4 == 3 else {}
    out, extra = call(block, *tensors, times=2, alpha=0.1 * (step % 3), **options, **extra_options)
    total += out.std().item() + len(extra)
print(f"{total:.4f}", extra)

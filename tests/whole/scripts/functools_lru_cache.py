# Masks and position tables come from functions under lru_cache, called with the lengths that turn up.
# expect: compiled>=0.75, traces>=1
from functools import lru_cache

import torch


@lru_cache(maxsize=4)
def causal_mask(length):
    return torch.triu(torch.full((length, length), float("-inf")), diagonal=1)


@lru_cache(maxsize=None)
def positions(length, width):
    angles = torch.arange(length).unsqueeze(1) / 10 ** (torch.arange(0, width, 2) / width)
    return torch.cat([angles.sin(), angles.cos()], dim=1)


def attend(x):
    x = x + positions(x.size(0), x.size(1))
    return torch.softmax(x @ x.t() + causal_mask(x.size(0)), dim=-1) @ x


torch.manual_seed(14)
inputs = [torch.randn(n, 4) for n in (3, 5, 3, 3, 6)]
total = 0.0
for step in range(60):
    y = attend(inputs[step % len(inputs)])
    total += y[-1].sum().item()
print(f"{total:.4f}", causal_mask.cache_info(), positions.cache_info().currsize)

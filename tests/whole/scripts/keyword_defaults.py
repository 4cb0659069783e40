# Positional-only, keyword-only and default arguments, among them one default tensor that all calls share.
# expect: compiled>=0.75, traces>=1
import inspect

import torch


def smooth(x, /, kernel=torch.tensor([0.25, 0.5, 0.25]), *, pad="edge", times=1, dtype=None):
    for _ in range(times):
        if pad == "edge":
            x = torch.cat([x[:1], x, x[-1:]])
        elif pad == "zero":
            x = torch.cat([x.new_zeros(1), x, x.new_zeros(1)])
        x = (x.unfold(0, len(kernel), 1) * kernel).sum(-1)
    return x if dtype is None else x.to(dtype)


torch.manual_seed(21)
signal = torch.randn(12)
results = {"plain": 0.0, "zero": 0.0, "own": 0.0, "double": 0.0}
for step in range(40):
    results["plain"] += smooth(signal).sum().item()
    results["zero"] += smooth(signal, pad="zero", times=2).sum().item()
    results["own"] += smooth(signal, torch.ones(3) / 3).sum().item()
    results["double"] += smooth(signal, dtype=torch.float64, pad="edge").sum().item()
    signal = signal.roll(1) * 0.99
try:
    smooth(x=signal)
except TypeError as error:
    print(error)
print({name: f"{value:.4f}" for name, value in results.items()})
print([p.kind.name for p in inspect.signature(smooth).parameters.values()])

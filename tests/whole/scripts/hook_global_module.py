# Global module hooks, registered for all modules in the middle of a loop and removed later, count calls by class.
# expect: compiled>=0.55, traces>=1
from collections import Counter

import torch
from torch import nn
from torch.nn.modules.module import register_module_forward_hook, register_module_forward_pre_hook

torch.manual_seed(3)
encoder = nn.Sequential(nn.Linear(4, 6), nn.GELU(), nn.LayerNorm(6))
head = nn.Linear(6, 2)
calls = Counter()
entered = []
handles = []
checks = []
x = torch.randn(7, 4)
with torch.no_grad():
    for step in range(60):
        if step == 20:
            handles.append(register_module_forward_hook(lambda m, a, out: calls.update([type(m).__name__])))
            handles.append(register_module_forward_pre_hook(lambda m, a: entered.append(tuple(a[0].shape))))
        if step == 30:
            for handle in handles:
                handle.remove()
        hidden = encoder(x + 0.05 * step)
        y = head(hidden).softmax(-1)
        if step % 12 == 0:
            checks.append(f"{y[:, 0].sum().item():.4f}")
print(checks)
print(sorted(calls.items()), len(entered), entered[:3])

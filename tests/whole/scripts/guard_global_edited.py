# Globals are edited from inside called functions, through globals(), and in an imported module's namespace.
# expect: compiled>=0.8, traces>=1
import types

import torch

RATE = 0.1
settings = types.ModuleType("settings")
settings.LIMIT = 1.0


def warm():
    global RATE
    RATE *= 1.5


def update(w, target):
    return w - (RATE * (w - target)).clamp(-settings.LIMIT, settings.LIMIT)


torch.manual_seed(107)
w = torch.randn(4) * 5
norms = []
for step in range(80):
    if step in (15, 30):
        warm()
    if step == 45:
        globals()["RATE"] = 0.02
    if step == 60:
        settings.LIMIT = 0.01
    w = update(w, torch.ones(4))
    norms.append(w.norm().item())
    if step == 70:
        w = w + 3
print([f"{n:.4f}" for n in norms[9::10]], f"{RATE:.3f}")

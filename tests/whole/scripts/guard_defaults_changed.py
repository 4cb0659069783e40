# __defaults__ and __kwdefaults__ of a function are edited while a loop calls it; a mutable default grows.
# expect: compiled>=0.8, traces>=1
import torch


def smooth(x, amount=0.5, *, steps=1, seen=[]):
    seen.append(steps)
    for _ in range(steps):
        x = (1 - amount) * x + amount * x.roll(1)
    return x


torch.manual_seed(108)
x = torch.randn(6)
spread = []
for step in range(80):
    if step == 25:
        smooth.__defaults__ = (0.25,)
    if step == 50:
        smooth.__kwdefaults__["steps"] = 2
    if step == 65:
        smooth.__kwdefaults__ = {"steps": 3, "seen": []}
    y = smooth(x + 0.01 * step)
    spread.append(y.std().item())
    x = x + 0.05 * torch.cos(y)
print([f"{s:.4f}" for s in spread[9::10]], len(smooth.__kwdefaults__["seen"]))

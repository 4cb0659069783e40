# C code changes what the loop relies on: dict.update on __dict__, setattr through map, list.__setitem__, operator functions.
# expect: compiled>=0.8, traces>=1
import operator

import torch


class Params:
    def __init__(self):
        self.scale, self.shift, self.power = 1.0, 0.0, 1


torch.manual_seed(111)
params, table, order = Params(), {"w": torch.ones(3)}, [torch.sin, torch.cos]
x = torch.rand(3)
sums = []
for step in range(100):
    if step == 15:
        params.__dict__.update(scale=0.5)
    if step == 30:
        list(map(setattr, [params, params], ["shift", "power"], [0.25, 2]))
    if step == 45:
        operator.setitem(table, "w", torch.tensor([1.0, 0.8, 0.6]))
    if step == 60:
        operator.itemgetter(0)([order.__setitem__(0, torch.tanh)])
    if step == 75:
        vars(params).__setitem__("scale", 2.0)
    if step == 90:
        operator.methodcaller("pop")(order)
    for function in order:
        x = function(params.scale * x ** params.power + params.shift) * table["w"]
    x = 0.5 * x.abs().clamp(0.1, 2) + 0.2
    sums.append(x.sum().item())
print([f"{s:.4f}" for s in sums[9::10]], len(order))

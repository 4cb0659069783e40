# An object's __class__ is assigned and its dict replaced while a loop calls it: the other class's method runs.
# expect: compiled>=0.8, traces>=1
import torch


class Fast:
    def __init__(self, weight):
        self.weight = weight

    def step(self, x):
        return torch.tanh(self.weight @ x)


class Careful(Fast):
    def step(self, x):
        return 0.5 * x + 0.5 * super().step(x)


torch.manual_seed(114)
model = Fast(torch.randn(4, 4) * 0.7)
x = torch.ones(4)
sums = []
for step in range(75):
    if step == 25:
        model.__class__ = Careful
    if step == 40:
        model.__dict__ = {"weight": torch.eye(4) * 0.9}
    if step == 60:
        Careful.__bases__ = (Fast,)
        Careful.step = Fast.step
    x = model.step(x) + 0.05
    sums.append(x.sum().item())
print([f"{s:.4f}" for s in sums[4::10]], type(model).__name__)

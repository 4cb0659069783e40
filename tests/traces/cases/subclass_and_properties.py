# A model with properties, class attributes, __getattr__ and operators of its own classes in the loop.
import torch


class Vector:
    scale = 0.5

    def __init__(self, data):
        self.data = data

    def __add__(self, other):
        return Vector(self.data + (other.data if isinstance(other, Vector) else other))

    def __mul__(self, k):
        return Vector(self.data * k)

    __rmul__ = __mul__

    @property
    def norm(self):
        return self.data.norm()

    def __getattr__(self, name):
        if name.startswith("plus_"):
            return self + float(name[5:])
        raise AttributeError(name)

    def __bool__(self):
        return bool(self.norm > 1)


v = Vector(torch.tensor([0.1, 0.2, 0.3]))
count = 0
for i in range(50):
    v = 0.9 * v + Vector(torch.full((3,), 0.1 * (i % 3)))
    if v:
        count += 1
        v = v * Vector.scale
    if i == 25:
        Vector.scale = 0.75
    v = v.plus_1 if not hasattr(v, "other") and i % 10 == 0 else v
print(count, [f"{x:.6f}" for x in v.data.tolist()], f"{v.norm.item():.6f}")

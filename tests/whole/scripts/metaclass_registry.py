# A metaclass registers layer classes under their names; a model is built from the registry and runs in a loop.
# expect: compiled>=0.75, traces>=1
import torch


class Registered(type):
    known = {}

    def __new__(mcs, name, bases, space, tag=None):
        cls = super().__new__(mcs, name, bases, space)
        if tag is not None:
            mcs.known[tag] = cls
        return cls

    def __init__(cls, name, bases, space, tag=None):
        super().__init__(name, bases, space)
        cls.made = 0

    def __call__(cls, *args, **kwargs):
        cls.made += 1
        return super().__call__(*args, **kwargs)

    def __contains__(cls, layer):
        return isinstance(layer, cls)


class Layer(metaclass=Registered):
    def __call__(self, x):
        raise NotImplementedError


class Affine(Layer, tag="affine"):
    def __init__(self, width):
        self.weight = torch.randn(width, width) * 0.3

    def __call__(self, x):
        return x @ self.weight


class Bump(Layer, tag="bump"):
    def __init__(self, width):
        self.width = width

    def __call__(self, x):
        return torch.exp(-x * x) / self.width


torch.manual_seed(58)
layers = [Registered.known[tag](5) for tag in ("affine", "bump", "affine")]
x = torch.randn(2, 5)
affine = 0
for step in range(40):
    for layer in layers:
        x = layer(x)
        affine += layer in Affine
    if step % 10 == 9:
        layers.append(Registered.known["bump" if step % 20 == 9 else "affine"](4 + step % 2 * 1))
print(sorted(Registered.known), Affine.made, Bump.made, affine, f"{x.sum().item():.5f}")

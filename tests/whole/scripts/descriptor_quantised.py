# A data descriptor on a layer rounds weights when they are set and counts reads; a non-data one makes a method.
# expect: compiled>=0.55, traces>=1
import torch


class Quantised:
    def __init__(self, levels):
        self.levels = levels

    def __set_name__(self, owner, name):
        self.name = "_" + name

    def __get__(self, instance, owner=None):
        if instance is None:
            return self
        instance.reads += 1
        return getattr(instance, self.name)

    def __set__(self, instance, value):
        setattr(instance, self.name, (value * self.levels).round() / self.levels)


class Scaled:
    def __get__(self, instance, owner):
        return lambda x: x * instance.gain


class Layer:
    weight = Quantised(16)
    scaled = Scaled()

    def __init__(self, weight, gain):
        self.reads, self.gain, self.weight = 0, gain, weight

    def __call__(self, x):
        return torch.tanh(self.scaled(x @ self.weight))


torch.manual_seed(11)
layer = Layer(torch.randn(5, 5), 0.7)
x = torch.randn(5)
for step in range(40):
    x = layer(x) + 0.01 * step
    if step % 15 == 14:
        layer.weight = layer.weight + 0.03
print(layer.reads, type(Layer.weight).__name__, f"{layer.weight.sum().item():.4f}")
print([f"{v:.4f}" for v in x.tolist()])

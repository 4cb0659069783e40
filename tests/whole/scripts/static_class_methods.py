# Static methods, class methods as alternative constructors, and one called through the instance in each iteration.
# expect: compiled>=0.2, traces>=1
import torch


class Filter:
    count = 0

    def __init__(self, taps):
        self.taps = taps
        type(self).count += 1

    @classmethod
    def box(cls, width):
        return cls(torch.ones(width) / width)

    @classmethod
    def between(cls, first, second, t):
        return cls(torch.lerp(first.taps, second.taps, t))

    @staticmethod
    def window(x, width):
        return x.unfold(0, width, 1)

    def __call__(self, x):
        return self.window(x, self.taps.numel()) @ self.taps


class Sharp(Filter):
    @staticmethod
    def window(x, width):
        return 1.5 * Filter.window(x, width) - 0.1


torch.manual_seed(61)
signal = torch.randn(20)
box, sharp = Filter.box(3), Sharp.box(3)
totals = [0.0, 0.0, 0.0]
for step in range(40):
    mixed = Sharp.between(box, sharp, step / 40)
    for k, f in enumerate((box, sharp, mixed)):
        totals[k] += f(signal).abs().sum().item()
    signal = signal.roll(1) * 0.98
print(Filter.count, Sharp.count, type(mixed).__name__, [f"{t:.4f}" for t in totals])

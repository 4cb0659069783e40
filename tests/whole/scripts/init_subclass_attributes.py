# __init_subclass__ collects variants; class attributes are read through instances and changed on the class in the loop.
# expect: compiled>=0.05, traces>=1
import torch


class Step:
    variants = []
    rate = 0.1
    calls = 0

    def __init_subclass__(cls, /, power=1.0, **kwargs):
        super().__init_subclass__(**kwargs)
        cls.power = power
        Step.variants.append(cls)

    def __call__(self, w, gradient):
        type(self).calls += 1
        return w - self.rate * self.direction(gradient)


class Plain(Step):
    def direction(self, gradient):
        return gradient


class Powered(Step, power=0.5):
    rate = 0.05

    def direction(self, gradient):
        return gradient.sign() * gradient.abs() ** self.power


torch.manual_seed(60)
w = torch.randn(5)
steps = [variant() for variant in Step.variants]
for step in range(60):
    w = steps[step % 2](w, w - 1)
    if step == 30:
        Step.rate = 0.2
    if step == 40:
        steps[1].rate = 0.01
print([c.__name__ for c in Step.variants], Plain.calls, Powered.calls, Step.calls, [f"{v:.4f}" for v in w.tolist()])

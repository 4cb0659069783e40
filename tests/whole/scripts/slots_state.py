# Optimizer state in objects with __slots__, with inheritance and an attribute that is missing until it is set.
# expect: compiled>=0.85, traces>=1
import torch


class Slot:
    __slots__ = ("value", "steps")

    def __init__(self, value):
        self.value, self.steps = value, 0


class Momentum(Slot):
    __slots__ = ("buffer", "__weakref__")

    def update(self, gradient):
        self.steps += 1
        try:
            self.buffer = 0.8 * self.buffer + gradient
        except AttributeError:
            self.buffer = gradient
        self.value = self.value - 0.05 * self.buffer


torch.manual_seed(54)
slots = [Momentum(torch.randn(4)) for _ in range(3)]
for step in range(50):
    for k, slot in enumerate(slots):
        slot.update(slot.value - k)
    if step == 30:
        del slots[1].buffer
try:
    slots[0].extra = 1
except AttributeError as error:
    print(type(error).__name__, hasattr(slots[0], "__dict__"))
print([slot.steps for slot in slots], [f"{slot.value.sum().item():.4f}" for slot in slots])

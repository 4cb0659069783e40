# Objects with __eq__ and __hash__ as dict keys: a memo of kernels by their configuration, with collisions.
# expect: traces>=1
import torch


class Key:
    compared = 0

    def __init__(self, size, width):
        self.size, self.width = size, width

    def __hash__(self):
        return self.size % 2

    def __eq__(self, other):
        Key.compared += 1
        return isinstance(other, Key) and (self.size, self.width) == (other.size, other.width)


made = {}


def kernel(size, width):
    key = Key(size, width)
    if key not in made:
        grid = torch.arange(size, dtype=torch.float32) - (size - 1) / 2
        weights = torch.exp(-(grid / width) ** 2)
        made[key] = weights / weights.sum()
    return made[key]


torch.manual_seed(70)
signal = torch.randn(1, 1, 16)
for step in range(60):
    size = (3, 5, 3, 7)[step % 4]
    weights = kernel(size, 1.5 if step % 5 else 2.5)
    smooth = torch.nn.functional.conv1d(signal, weights.view(1, 1, -1), padding=size // 2)
    signal = 0.9 * signal + 0.1 * smooth.roll(1, -1)
print(len(made), Key.compared > 60, sorted((k.size, k.width) for k in made), f"{signal.abs().sum().item():.4f}")

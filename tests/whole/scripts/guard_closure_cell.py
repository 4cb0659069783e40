# The cell of a closure changes: by a sibling closure, and by cell_contents from outside.
# expect: compiled>=0.8, traces>=1
import torch


def make(gain, offset):
    def forward(x):
        return torch.tanh(x * gain + offset)

    def retune(by):
        nonlocal gain
        gain *= by
    return forward, retune


torch.manual_seed(109)
forward, retune = make(1.0, torch.tensor(0.1))
first, _ = make(0.3, torch.tensor(-0.2))
x = torch.randn(4)
means = []
for step in range(80):
    if step in (20, 35):
        retune(0.6)
    if step == 50:
        names = forward.__code__.co_freevars
        forward.__closure__[names.index("offset")].cell_contents = torch.tensor(0.7)
    if step == 65:
        forward, first = first, forward
    x = 0.5 * x + forward(x)
    means.append(x.mean().item())
print([f"{m:.4f}" for m in means[9::10]], names)

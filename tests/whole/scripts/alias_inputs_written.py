# Functions that write their arguments and return them, as in-place activations do: callers see the change, and identity holds.
# expect: compiled>=0.85, traces>=1
import torch
import torch.nn.functional as F


def normalise_(x):
    x.sub_(x.mean())
    return x.div_(x.norm() + 1e-6)


def blend_(target, source, rate):
    target.lerp_(source, rate)
    source.zero_()
    return target, source


torch.manual_seed(130)
target, same = torch.zeros(5), 0
for step in range(50):
    x = torch.randn(5)
    y = normalise_(x)
    z = F.relu(y, inplace=True)
    same += y is x and z.data_ptr() == x.data_ptr()
    peak = x.max()
    first, second = blend_(target, x, 0.1)
    same += first is target and second.sum().item() == 0.0
    target.add_(peak, alpha=0.01)
print(same, [f"{v:.4f}" for v in target.tolist()])

# An argument is a float, an int, None, a tensor or a list at times: the same code handles each.
# expect: compiled>=0.85, traces>=1
import torch


def weighted(x, weight):
    if weight is None:
        return x
    if isinstance(weight, (list, tuple)):
        weight = torch.tensor(weight)
    return x * weight


torch.manual_seed(99)
x = torch.randn(3)
kinds = []
for step in range(100):
    weight = 0.97
    if step % 10 == 9:
        weight = (2, None, torch.tensor([0.5, 1.0, 2.0]), [1.0, 0.5, 1.0], True)[step // 10 % 5]
    kinds.append(type(weight).__name__[0])
    x = torch.sin(weighted(x, weight)) + 0.1
print("".join(kinds), [f"{v:.4f}" for v in x.tolist()])

# No loop in the hot region: a function that is called again and again from map() and from a comprehension.
# expect: compiled>=0.37
import torch

torch.manual_seed(0)
w = torch.randn(6, 6) * 0.2


def apply(k):
    x = torch.full((6,), float(k))
    return (torch.tanh(w @ x) * x.sigmoid()).sum().item()


print(f"{sum(map(apply, range(40))):.5f}")
print(f"{sum([apply(k) for k in range(40)]):.5f}")
print(sorted(range(5), key=apply))

# The default back end: a function and a training step.
# alone: it starts processes of its own
import torch

torch.manual_seed(0)


@torch.compile
def f(x, w):
    return torch.relu(x @ w).sum()


w = torch.randn(8, 8)
total = torch.zeros(())
for i in range(60):
    total = total + f(torch.randn(4, 8), w) * 0.5
print(total)

# Random numbers in the graph, in the eager work around it and in dropout: the generator's stream is python's.
import torch

torch.manual_seed(3)
drop = torch.nn.Dropout(0.5)


@torch.compile(backend="eager")
def f(x):
    return drop(x) + torch.rand(4) + torch.randn(4)


total = torch.zeros(4)
for i in range(80):
    total += f(torch.rand(4)) * torch.rand(4)
print(total, torch.rand(2))

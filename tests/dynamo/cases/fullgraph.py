# fullgraph=True counts the frames that were compiled.
import torch

f = torch.compile(lambda x: x * 2, backend="eager", fullgraph=True)
print(sum(f(torch.ones(2)).sum().item() for _ in range(100)))


@torch.compile(backend="eager", fullgraph=True)
def g(x, y):
    return torch.where(x > y, x, y).sum()


total = torch.zeros(())
for i in range(100):
    total = total + g(torch.arange(4.0), torch.full((4,), i / 25))
print(total)


@torch.compile(backend="eager", fullgraph=True)
def breaks(x):
    torch._dynamo.graph_break()
    return x + 1


for i in range(5):
    try:
        breaks(torch.ones(2))
    except torch._dynamo.exc.Unsupported as error:
        print(type(error).__name__)

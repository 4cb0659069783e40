# allow_in_graph, assume_constant_result and torch._dynamo.explain.
import torch

seen = []


@torch._dynamo.allow_in_graph
def opaque(x):
    seen.append(1)
    return x + 1


@torch.compiler.assume_constant_result
def constant():
    seen.append(2)
    return 3


@torch.compile(backend="eager", fullgraph=True)
def f(x):
    return opaque(x) * constant()


total = torch.zeros(2)
for i in range(60):
    total = total + f(torch.full((2,), i * 1.0))
print(total, seen.count(1), seen.count(2))


def g(x):
    x = x + 1
    torch._dynamo.graph_break()
    return x * 2


for i in range(3):
    found = torch._dynamo.explain(g)(torch.ones(2))
    print(found.graph_count, found.graph_break_count, found.op_count)

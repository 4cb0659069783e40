# Graph breaks: print, a data-dependent branch, .item(), and a loop around them inside the compiled function.
import logging

import torch

torch._logging.set_logs(dynamo=logging.ERROR)
graphs = []


def backend(graph, inputs):
    graphs.append(len(graph.graph.nodes))
    return graph.forward


@torch.compile(backend=backend)
def f(x, n):
    y = x * 2
    if y.sum() > 3:
        y = y - 1
    torch._dynamo.graph_break()
    z = y.relu()
    return z + z.max().item()


@torch.compile(backend=backend)
def loop(x):
    for i in range(40):
        x = x + 0.5
        if i % 20 == 0:
            print("round", i, x.sum().item())
    return x


total = torch.zeros(3)
for i in range(60):
    total = total + f(torch.full((3,), i / 30), i % 2)
print(total, graphs)
print(loop(torch.zeros(2)), loop(torch.ones(2)), len(graphs))

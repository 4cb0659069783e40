# Guards look at globals, attributes, closures and grad mode: what changes makes another graph.
import torch

factor = 2.0
flag = [False]


class Config:
    scale = 1.0


compilations = []


def backend(graph, inputs):
    compilations.append(1)
    return graph.forward


@torch.compile(backend=backend)
def f(x):
    y = x * Config.scale
    if flag[0]:
        y = y + 10
    return y + factor


total = 0.0
for i in range(120):
    if i == 40:
        factor = 3.0
    if i == 60:
        Config.scale = 0.5
    if i == 80:
        flag[0] = True
    with torch.set_grad_enabled(i % 40 < 30):
        total += f(torch.ones(2, requires_grad=True)).sum().item()
print(total, len(compilations))

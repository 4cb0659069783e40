# torch._dynamo.run: what has been compiled is used, nothing is compiled any more; and configurations that are patched around calls.
import torch

compilations, calls = [], []


def backend(graph, inputs):
    compilations.append(1)

    def run(*args):
        calls.append(1)
        return graph.forward(*args)

    return run


def f(x):
    return x.relu() + 1


compiled = torch.compile(f, backend=backend)
total = torch.zeros(())
for i in range(30):
    total = total + compiled(torch.ones(2) * i).sum()
only = torch._dynamo.run(f)
for i in range(60):
    total = total + only(torch.ones(2 + i % 2) * i).sum()
print(total, len(compilations), len(calls))
for i in range(60):
    with torch._dynamo.config.patch(automatic_dynamic_shapes=False):
        total = total + compiled(torch.ones(2 + i % 3)).sum()
print(total, len(compilations), len(calls))

# torch.compiler.set_stance in a loop: eager, and back; as a context manager and by itself.
import torch

compilations, calls = [], []


def backend(graph, inputs):
    compilations.append(1)

    def run(*args):
        calls.append(1)
        return graph.forward(*args)

    return run


@torch.compile(backend=backend)
def f(x):
    return x * 2 + torch.compiler.is_compiling()


total = 0.0
for i in range(90):
    if 30 <= i < 60:
        with torch.compiler.set_stance("force_eager"):
            total += f(torch.ones(2)).sum().item()
    else:
        total += f(torch.ones(2)).sum().item()
print(total, len(compilations), len(calls))
torch.compiler.set_stance("eager_on_recompile")
for i in range(40):
    total += f(torch.ones(3 + i % 4)).sum().item()
print(total, len(compilations), len(calls))
torch.compiler.set_stance("default")
for i in range(40):
    total += f(torch.ones(3 + i % 4)).sum().item()
print(total, len(compilations), len(calls))

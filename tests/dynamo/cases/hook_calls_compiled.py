# A gradient hook that calls a compiled function, and one that compiles.
import torch

calls = []


def backend(graph, inputs):
    def run(*args):
        calls.append(1)
        return graph.forward(*args)

    return run


@torch.compile(backend=backend)
def clip(grad):
    return grad.clamp(-0.1, 0.1)


seen = []
w = torch.ones(3, requires_grad=True)
w.register_hook(clip)
w.register_post_accumulate_grad_hook(lambda p: seen.append(clip(p.grad).sum()))
for i in range(60):
    (w * i).sum().backward()
    with torch.no_grad():
        w -= 0.1 * w.grad
    w.grad = None
print(w, len(calls), sum(seen))

# torch.library.custom_op with fake and autograd parts, in eager loops and in compiled functions.
import torch

calls = []


@torch.library.custom_op("dynvm_test::scaled", mutates_args=())
def scaled(x: torch.Tensor, by: float) -> torch.Tensor:
    calls.append(by)
    return x * by


@scaled.register_fake
def _(x, by):
    return torch.empty_like(x)


def setup(ctx, inputs, output):
    ctx.by = inputs[1]


scaled.register_autograd(lambda ctx, grad: (grad * ctx.by, None), setup_context=setup)


@torch.compile(backend="aot_eager", fullgraph=True)
def f(x):
    return scaled(x, 2.0).sum()


p = torch.ones(3, requires_grad=True)
for i in range(50):
    loss = f(p) + scaled(p, 0.5).sum()
    loss.backward()
    with torch.no_grad():
        p -= 0.01 * p.grad
        p.grad = None
print(p, len(calls), calls.count(2.0))

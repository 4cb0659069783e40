# torch.autograd.Function in compiled functions, and one whose forward calls a compiled function.
import torch


class Double(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * 2

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return grad * 2 + x * 0


@torch.compile(backend="aot_eager")
def f(x):
    return Double.apply(x).sin().sum()


inner = torch.compile(lambda x: x.cos(), backend="eager")


class Calls(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return inner(x)

    @staticmethod
    def backward(ctx, grad):
        return inner(grad)


p = torch.ones(2, requires_grad=True)
for i in range(50):
    (f(p) + Calls.apply(p).sum()).backward()
    with torch.no_grad():
        p -= 0.01 * p.grad
    p.grad = None
print(p)

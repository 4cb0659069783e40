# An autograd.Function with its own forward and backward in Python.
import torch


class Clamp(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, limit):
        ctx.save_for_backward(x)
        ctx.limit = limit
        return x.clamp(-limit, limit)

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return grad * (x.abs() <= ctx.limit) + 0.1 * grad, None


torch.manual_seed(0)
w = torch.randn(6, requires_grad=True)
x = torch.randn(9, 6)
for i in range(40):
    loss = (Clamp.apply(x * w, 0.5 + 0.01 * i) - 0.2).pow(2).mean()
    loss.backward()
    with torch.no_grad():
        w -= 0.3 * w.grad
    w.grad = None
print(f"{loss.item():.6f}", [f"{v:.6f}" for v in w.tolist()])

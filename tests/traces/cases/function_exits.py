# A trace that is left between forward and backward makes the graph anew, with the nodes of Functions in it: their backward() runs then as ever.
# expect: compiled>=0.3, side_exits>=1
import torch


class Scale(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, factor, names):
        ctx.factor, ctx.names = factor, names
        y = x * factor
        z = torch.tanh(x)
        ctx.save_for_backward(x, z, y)
        return y, z.sum(1), [1, 2]

    @staticmethod
    def backward(ctx, gy, gz, unused):
        x, z, y = ctx.saved_tensors
        if noisy:
            print("backward", ctx.factor, ctx.names, [tuple(s.shape) for s in (x, z, y)], ctx.needs_input_grad, y.requires_grad, y.grad_fn is None)
        return gy * ctx.factor + gz.unsqueeze(1) * (1 - z * z), None, None


class Same(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x

    @staticmethod
    def backward(ctx, g):
        if noisy:
            print("same")
        return g * 0.5


noisy = False


def main():
    global noisy
    torch.manual_seed(0)
    w = torch.randn(5, 4, requires_grad=True)
    x = torch.randn(6, 5)
    for i in range(120):
        h = x @ w
        k = Same.apply(h)
        y, z, items = Scale.apply(k, 0.5, ("a", i % 2))
        loss = (y.relu() + h).pow(2).mean() + z.abs().mean()
        noisy = False
        if loss > 1.2 or i % 17 == 0:
            noisy = True
            print(i, type(y.grad_fn).__name__, y.grad_fn.factor, y.grad_fn.names, k.grad_fn.name(), [len(f) for f in (y.grad_fn.next_functions, k.grad_fn.next_functions)], items)
        loss.backward()
        with torch.no_grad():
            w -= 0.05 * w.grad
        if i % 10 == 0:
            print(f"{loss.item():.5f}", f"{w.grad.abs().sum().item():.5f}")
        w.grad = None


main()

# Tensors without a graph get one by operations in place, and the trace is left behind that: exits that rebuild the graph do not write twice.
# expect: compiled>=0.2, traces>=3
import torch

torch.manual_seed(0)
w = torch.randn(4, 3, requires_grad=True)
x = torch.randn(5, 4)
base = torch.ones(())
buffers = [torch.zeros(5, 3) for _ in range(3)]


class Product(torch.autograd.Function):
    @staticmethod
    def forward(ctx, a, b):
        ctx.save_for_backward(a, b)
        return a * b

    @staticmethod
    def backward(ctx, grad):
        a, b = ctx.saved_tensors
        return grad * b, grad * a


def zeros(i):
    total = torch.zeros(())
    total += (x @ w).mean()
    return total


def copied(i):
    total = base.clone()
    total += (x @ w).mean()
    total *= 2
    return total


def view_of_copy(i):
    total = base.detach().clone().view(())
    total += (x @ w).mean()
    return total


def filled(i):
    total = torch.empty(5, 3).fill_(0.25)
    total.mul_(x @ w)
    return total


def filled_in_part(i):
    total = torch.zeros(5, 3)
    total[1:].fill_(2.0)
    total += (x @ w) * 0.1
    return total


def function(i):
    y = Product.apply(x @ w, x @ w)
    y.add_(1)
    return y


def kept(i):
    total = buffers[i % 3].detach()
    total.zero_()
    total += (x @ w) * 0.1
    return total


def kept_without_grad(i):
    total = buffers[i % 3].detach()
    with torch.no_grad():
        total.copy_(x[:, :3])
    total += (x @ w) * 0.1
    return total


def run(make):
    for i in range(60):
        total = make(i)
        result = torch.tanh(total).sum()
        if i % 5 == 3:
            print(end="")
        result.backward()
        if i % 13 == 7:
            print(i, f"{total.sum().item():.4f} {result.item():.4f} {w.grad.sum().item():.4f}", total.grad_fn.name())
        w.grad = None


for make in (zeros, copied, view_of_copy, filled, filled_in_part, function, kept, kept_without_grad):
    print(make.__name__)
    run(make)

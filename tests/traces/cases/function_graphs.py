# Two ways from one memory: what a Function gives on its argument's memory has a graph of its own, also where a trace is left between forward and backward.
# expect: compiled>=0.5, side_exits>=1
import torch
from torch import nn


class Reverse(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, scale):
        ctx.scale = scale
        return x.view_as(x)

    @staticmethod
    def backward(ctx, grad):
        return -ctx.scale * grad, None


class Both(torch.autograd.Function):  # its own arguments, among which one without gradients
    @staticmethod
    def forward(ctx, *tensors):
        ctx.mark_non_differentiable(*[t for t in tensors if not t.requires_grad])
        ctx.count = len(tensors)
        return tensors

    @staticmethod
    def backward(ctx, *grads):
        assert len(grads) == ctx.count
        return tuple(None if g is None else g * 1.5 for g in grads)


class Inner(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        y = x.sin()
        ctx.save_for_backward(y, x)
        return y

    @staticmethod
    def backward(ctx, grad):
        y, x = ctx.saved_tensors
        return grad * x.cos() + 0 * y


class Outer(torch.autograd.Function):  # calls another one
    @staticmethod
    def forward(ctx, x, power):
        y = Inner.apply(x) ** power
        ctx.save_for_backward(x)
        ctx.power = power
        return y

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return grad * ctx.power * x.sin() ** (ctx.power - 1) * x.cos(), None


class Drop(torch.autograd.Function):  # draws
    @staticmethod
    def forward(ctx, x, p):
        mask = torch.rand_like(x) > p
        ctx.save_for_backward(mask)
        ctx.factor = 1 / (1 - p)
        return x * mask * ctx.factor

    @staticmethod
    def backward(ctx, grad):
        (mask,) = ctx.saved_tensors
        return grad * mask * ctx.factor, None


def main():
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(6, 8), nn.Tanh())
    heads = nn.ModuleList([nn.Linear(8, 3), nn.Linear(8, 3)])
    parameters = [*net.parameters(), *heads.parameters()]
    optimizer = torch.optim.SGD(parameters, lr=0.1)
    x = torch.randn(12, 6)
    t = torch.randn(12, 3)
    for i in range(200):
        optimizer.zero_grad()
        h = net(x)
        r = Reverse.apply(h, 0.3)
        a, fixed, b = Both.apply(heads[0](h), x, heads[1](r))
        c = Outer.apply(Drop.apply(a, 0.25), 2)
        two = (h.view(-1) * 2 - r.view(-1)).pow(2).mean() + (h.reshape(4, 24) * r.reshape(4, 24)).mean()
        loss = (a - t).pow(2).mean() + (b + t).pow(2).mean() + c.mean() + two + (fixed * 0.1).mean() + Inner.apply(h).mean()
        if i % 9 == 4:
            print(i, f"{loss.item():.5f}", fixed.requires_grad, r.grad_fn.name(), b.grad_fn.name(), b.output_nr, c.grad_fn.name())
        if i % 50 == 20:
            gradients = torch.autograd.grad(loss, [h, a, r], retain_graph=True)
            print([f"{g.sum().item():.5f}" for g in gradients])
        loss.backward()
        optimizer.step()
        if i % 9 == 4:
            print([f"{p.grad.sum().item():.5f}" for p in parameters])
    print([f"{p.sum().item():.4f}" for p in parameters], f"{torch.rand(1).item():.5f}")


main()

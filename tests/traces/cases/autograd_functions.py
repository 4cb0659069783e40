# Functions with a forward and a backward in Python, of many kinds, are part of a training iteration's trace.
# expect: compiled>=0.9, traces>=1
import torch
from torch import nn
from torch.autograd.function import once_differentiable


class Swish(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, beta=1.0):
        s = torch.sigmoid(beta * x)
        ctx.save_for_backward(x, s)
        ctx.beta = beta
        return x * s

    @staticmethod
    def backward(ctx, grad):
        x, s = ctx.saved_tensors
        return grad * (s + ctx.beta * x * s * (1 - s)), None


class Reverse(torch.autograd.Function):  # gives what it was given
    @staticmethod
    def forward(ctx, x, scale):
        ctx.scale = scale
        return x.view_as(x)

    @staticmethod
    def backward(ctx, grad):
        return -ctx.scale * grad, None


class Round(torch.autograd.Function):  # straight through
    @staticmethod
    def forward(ctx, x):
        return torch.round(x * 8) / 8

    @staticmethod
    def backward(ctx, grad):
        return grad


class Linear(torch.autograd.Function):  # context made apart, gradients only where they are needed
    @staticmethod
    def forward(x, weight, bias):
        return x @ weight.t() + bias

    @staticmethod
    def setup_context(ctx, inputs, output):
        x, weight, bias = inputs
        ctx.save_for_backward(x, weight)

    @staticmethod
    def backward(ctx, grad):
        x, weight = ctx.saved_tensors
        gx = gw = gb = None
        if ctx.needs_input_grad[0]:
            gx = grad @ weight
        if ctx.needs_input_grad[1]:
            gw = grad.t() @ x
        if ctx.needs_input_grad[2]:
            gb = grad.sum(0)
        return gx, gw, gb


class Top(torch.autograd.Function):  # several results, one without gradients; saves what it gives
    @staticmethod
    def forward(ctx, x):
        y = torch.exp(x * 0.1)
        best = x.argmax(dim=1)
        half = x * 0.5
        ctx.mark_non_differentiable(best)
        ctx.set_materialize_grads(False)
        ctx.save_for_backward(y)
        return y, best, half

    @staticmethod
    @once_differentiable
    def backward(ctx, gy, gbest, ghalf):
        (y,) = ctx.saved_tensors
        out = None
        if gy is not None:
            out = gy * y * 0.1
        if ghalf is not None:
            out = ghalf * 0.5 if out is None else out + ghalf * 0.5
        return out


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Linear(6, 8)
        self.weight = nn.Parameter(torch.randn(5, 8) * 0.3)
        self.bias = nn.Parameter(torch.zeros(5))
        self.domain = nn.Linear(8, 2)

    def forward(self, x):
        h = Swish.apply(self.first(x), 1.5)
        d = self.domain(Reverse.apply(h, 0.3))
        y, best, half = Top.apply(Linear.apply(h, self.weight, self.bias))
        return y + Round.apply(h.sum(1, keepdim=True)), best, d


torch.manual_seed(0)
net = Net()
optimizer = torch.optim.Adam(net.parameters(), lr=0.01)
x = torch.randn(12, 6)
t = torch.randn(12, 5)
domains = torch.randint(0, 2, (12,))
for i in range(160):
    optimizer.zero_grad()
    y, best, d = net(x)
    loss = (y - t).pow(2).mean() + nn.functional.cross_entropy(d, domains)
    loss.backward()
    optimizer.step()
    if i % 40 == 0:
        print(i, f"{loss.item():.4f}", best.tolist())
print(f"{loss.item():.4f}", [f"{p.sum().item():.4f}" for p in net.parameters()])

# An autograd.Function that returns what it was given: another tensor on the same memory, with a graph of its own. Beside the one that it was given,
# and also where both come from before the loop.
import torch
from torch import nn

torch.manual_seed(0)
calls = []


class Reverse(nn.Module):
    class Function(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, scale):
            ctx.scale = scale
            return x

        @staticmethod
        def backward(ctx, gradient):
            calls.append(ctx.scale)
            return -ctx.scale * gradient, None

    def forward(self, x, scale):
        return self.Function.apply(x, scale)


reverse, features, head = Reverse(), nn.Linear(4, 6), nn.Linear(6, 2)
x = torch.randn(5, 4)
for i in range(30):
    h = torch.tanh(features(x))
    other = reverse(h, 0.5)
    loss = head(other).pow(2).mean() + h.sum() * (0.1 if i % 2 else 0.2)
    loss.backward()
    with torch.no_grad():
        for p in (*features.parameters(), *head.parameters()):
            p -= 0.1 * p.grad
            p.grad = None
print(len(calls), f"{loss.item():.6f} {features.weight.sum().item():.6f}")

for i in range(20):
    w = torch.ones(3, requires_grad=True)
    plain = w * 2
    turned = reverse(plain, 3.0)
    for j in range(6):
        ((plain + j).sum() + (turned * j).sum()).backward(retain_graph=True)
    if i > 17:
        print(w.grad, len(calls))

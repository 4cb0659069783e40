# A custom autograd.Function with several inputs and outputs, non-differentiable ones and needs_input_grad: a straight-through quantiser.
# expect: compiled>=0.35, traces>=1
import torch
from torch import nn


class Quantise(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, scale, levels):
        q = (x / scale).round().clamp(-levels, levels)
        ctx.save_for_backward(x, scale, q)
        ctx.levels = levels
        index = (q + levels).long()
        ctx.mark_non_differentiable(index)
        return q * scale, index

    @staticmethod
    def backward(ctx, grad, _):
        x, scale, q = ctx.saved_tensors
        inside = (x / scale).abs() <= ctx.levels
        grad_scale = (grad * (q - x / scale * inside)).sum() if ctx.needs_input_grad[1] else None
        return grad * inside, grad_scale, None


torch.manual_seed(148)
layer, scale = nn.Linear(4, 3), nn.Parameter(torch.tensor(0.3))
optimizer = torch.optim.SGD([*layer.parameters(), scale], lr=0.05)
x, y = torch.randn(10, 4), torch.randn(10, 3)
codes = set()
for step in range(40):
    scale.requires_grad_(step % 5 != 0)
    optimizer.zero_grad()
    weight, index = Quantise.apply(layer.weight, scale, 3)
    loss = nn.functional.mse_loss(nn.functional.linear(x, weight, layer.bias), y)
    loss.backward()
    optimizer.step()
    codes.update(index.flatten().tolist())
print(sorted(codes), f"{loss.item():.5f} {scale.item():.5f}", index.requires_grad)

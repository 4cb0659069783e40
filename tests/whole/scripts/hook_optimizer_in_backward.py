# Each parameter is updated as soon as its gradient is there (post-accumulate hooks), with momentum kept in a dict, and its gradient is given up at once.
# expect: compiled>=0.6, traces>=1
import torch
from torch import nn

torch.manual_seed(31)
model = nn.Sequential(nn.Linear(6, 8), nn.ReLU(), nn.Linear(8, 2))
momentum = {parameter: torch.zeros_like(parameter) for parameter in model.parameters()}


def update(parameter):
    with torch.no_grad():
        moving = momentum[parameter]
        moving.mul_(0.9).add_(parameter.grad)
        parameter.sub_(moving, alpha=0.02)
    parameter.grad = None


for parameter in model.parameters():
    parameter.register_post_accumulate_grad_hook(update)
x = torch.randn(20, 6)
y = x[:, :2].sin()


def train(steps):
    total = 0.0
    for step in range(steps):
        loss = nn.functional.mse_loss(model(x), y)
        loss.backward()
        total += loss.item()
    return total / steps


print(f"{train(40):.5f} {train(40):.5f}", [p.grad for p in model.parameters()], f"{sum(m.abs().sum() for m in momentum.values()).item():.4f}")

# Hooks on leaves of all kinds: a lambda over a mask, a bound method, a callable object, one that only looks, several on one leaf, one that is taken
# away and put back while the loop runs, and one that raises.
# expect: compiled>=0.6, traces>=1
import torch
from torch import nn

torch.manual_seed(12)
model = nn.Sequential(nn.Linear(5, 6), nn.Tanh(), nn.Linear(6, 3))
x, y = torch.randn(11, 5), torch.randint(0, 3, (11,))


class Limit:
    def __init__(self, most):
        self.most = most

    def clamp(self, grad):
        return grad.clamp(-self.most, self.most)

    def __call__(self, grad):
        return grad - grad.mean(0, keepdim=True)


first, second = model[0], model[2]
limit = Limit(0.05)
mask = (torch.arange(6) % 2 == 0).float()[:, None]
first.weight.register_hook(lambda grad: grad * mask)
first.weight.register_hook(limit)
first.bias.register_hook(limit.clamp)
second.weight.register_hook(lambda grad: None if grad.shape == second.weight.shape else grad * 0)
before = first.weight.detach().clone()


def halve(grad):
    return grad / 2


def train(steps, rate=0.5):
    losses = []
    for step in range(steps):
        model.zero_grad(set_to_none=step % 2 == 0)
        loss = nn.functional.cross_entropy(model(x), y)
        loss.backward()
        with torch.no_grad():
            for parameter in model.parameters():
                parameter -= rate * parameter.grad
        losses.append(loss.detach())
    return torch.stack(losses).mean().item()


print(f"{train(30):.5f}")
handle = second.bias.register_hook(halve)
print(f"{train(30):.5f}")
limit.most = 0.01
print(f"{train(30):.5f}")
handle.remove()
print(f"{train(30):.5f}", torch.equal(before[1::2], first.weight.detach()[1::2]))


def fails(grad):
    if grad.abs().max() > 0:
        raise ValueError("not finite enough")


second.weight.register_hook(fails)
caught = []
for step in range(20):
    try:
        train(1)
    except ValueError as error:
        caught.append(str(error))
print(len(caught), set(caught), [f"{p.sum().item():.4f}" for p in model.parameters()])

# Hooks that an iteration registers on tensors that it has made: they see and change gradients, also where the trace is left before backward().
# expect: compiled>=0.6, side_exits>=1
import torch
from torch import nn


class Clip:
    def __init__(self, limit):
        self.limit = limit
        self.calls = 0

    def hook(self, grad):
        self.calls += 1
        return grad.clamp(-self.limit, self.limit)


def scale(grad):
    return grad * 0.5


def main():
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(5, 6), nn.Tanh())
    head = nn.Linear(6, 2)
    parameters = [*net.parameters(), *head.parameters()]
    optimizer = torch.optim.SGD(parameters, lr=0.1)
    clip = Clip(0.01)
    x = torch.randn(9, 5)
    t = torch.randn(9, 2)
    norms = []
    for i in range(160):
        optimizer.zero_grad()
        h = net(x)
        h.register_hook(scale)
        h.register_hook(lambda g, factor=1.5: g * factor)
        y = head(h)
        seen = []
        y.register_hook(lambda g: seen.append(g.norm()))
        z = (y - t).tanh()
        z.register_hook(clip.hook)
        loss = z.pow(2).mean()
        if i % 11 == 5:
            print(i, f"{loss.item():.4f}", len(seen))
        loss.backward()
        norms += seen
        optimizer.step()
        if i % 11 == 5:
            print([f"{p.grad.sum().item():.5f}" for p in parameters], len(seen), clip.calls)
    print(f"{sum(norms).item():.4f}", clip.calls, [f"{p.sum().item():.4f}" for p in parameters])


main()

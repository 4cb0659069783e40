# Full backward hooks and pre-hooks of modules are part of a training iteration's trace, and see what they see in python where it is left.
# expect: compiled>=0.6, side_exits>=1
import torch
from torch import nn


def halve(module, grad_input, grad_output):
    return tuple(None if g is None else g * 0.5 for g in grad_input)


class Watch:
    def __init__(self):
        self.sums = []

    def pre(self, module, grad_output):
        self.sums.append(grad_output[0].sum())

    def full(self, module, grad_input, grad_output):
        self.sums.append(grad_input[0].abs().sum())


def main():
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(5, 6), nn.Tanh(), nn.Linear(6, 6), nn.ReLU(), nn.Linear(6, 2))
    watch = Watch()
    net[2].register_full_backward_hook(halve)
    net[1].register_full_backward_hook(watch.full)
    net[3].register_full_backward_pre_hook(watch.pre)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    x = torch.randn(9, 5)
    t = torch.randn(9, 2)
    for i in range(160):
        optimizer.zero_grad()
        y = net(x)
        loss = (y - t).pow(2).mean()
        if i % 11 == 5:
            print(i, f"{loss.item():.4f}", len(watch.sums))
        loss.backward()
        optimizer.step()
        if i % 11 == 5:
            print([f"{p.grad.sum().item():.5f}" for p in net.parameters()], len(watch.sums))
    print(f"{sum(watch.sums).item():.4f}", len(watch.sums), [f"{p.sum().item():.4f}" for p in net.parameters()])


main()

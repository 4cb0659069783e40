# Garbage is collected whenever memory is asked for, within a torch call too: its finalizers compute, and are no part of that call.
# expect: compiled>=0.85
import gc
import torch



class Node:
    def __init__(self):
        self.me = self

    def __del__(self):
        torch.ones(2).add_(1)


def train(steps):
    torch.manual_seed(0)
    w = torch.randn(4, 4, requires_grad=True)
    x = torch.randn(4, 4)
    for i in range(steps):
        h = x
        for _ in range(12):
            Node()
            h = torch.tanh(h @ w).relu() + x
        loss = h.pow(2).mean()
        loss.backward()
        with torch.no_grad():
            w -= 0.1 * w.grad
            w.grad = None
    return w


gc.collect()
gc.set_threshold(5, 2, 2)
w = train(60)
gc.set_threshold(700, 10, 10)
gc.collect()
print(f"{w.sum().item():.5f}")

# Two threads train a model each, with generators of their own, while the main thread computes too: nothing mixes.
# expect: traces>=1
import threading

import torch
from torch import nn


def train(name, seed, results):
    generator = torch.Generator().manual_seed(seed)
    w = torch.zeros(5, 1, requires_grad=True)
    for step in range(60):
        x = torch.randn(8, 5, generator=generator)
        loss = nn.functional.mse_loss(x @ w, x[:, :1] * seed)
        (grad,) = torch.autograd.grad(loss, w)
        with torch.no_grad():
            w -= 0.1 * grad
    results[name] = (loss.item(), w.sum().item())


results = {}
threads = [threading.Thread(target=train, args=(f"t{k}", k + 1, results)) for k in range(2)]
for thread in threads:
    thread.start()
train("main", 5, results)
for thread in threads:
    thread.join()
print({name: [f"{v:.4f}" for v in values] for name, values in sorted(results.items())})

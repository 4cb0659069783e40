# The training loop itself is a generator that yields after each step; the caller draws from it and stops it.
import torch
from torch import nn


def training(model, x, y, rate):
    step = 0
    try:
        while True:
            loss = (model(x) - y).pow(2).mean()
            grads = torch.autograd.grad(loss, list(model.parameters()))
            with torch.no_grad():
                for p, g in zip(model.parameters(), grads):
                    p.sub_(rate * g)
            step += 1
            yield step, loss.item()
    except GeneratorExit:
        print("stopped at", step)
        raise


torch.manual_seed(87)
model = nn.Linear(3, 1)
x = torch.randn(10, 3)
run = training(model, x, x.mean(1, keepdim=True), 0.1)
losses = []
for step, loss in run:
    losses.append(loss)
    if loss < 1e-3 or step == 60:
        break
run.close()
print(len(losses), f"{losses[0]:.4f} {losses[-1]:.5f}", next(run, "nothing"))

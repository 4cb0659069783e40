# Grad mode is a thread's own: a worker under no_grad does not change the main thread's training, and starts with grad on.
# expect: traces>=1
import threading

import torch
from torch import nn

torch.manual_seed(140)
model = nn.Linear(3, 1)
evaluations, flags = [], []
start, stop = threading.Barrier(2), threading.Event()


def evaluate():
    flags.append(torch.is_grad_enabled())
    with torch.no_grad():
        start.wait()
        probe = torch.ones(3)
        for k in range(40):
            probe = torch.sin(probe + 0.1 * k)
            flags.append(torch.is_grad_enabled())
        evaluations.append(probe.sum().item())
        stop.wait()


thread = threading.Thread(target=evaluate)
thread.start()
start.wait()
x = torch.randn(6, 3)
for step in range(50):
    loss = (model(x) - 1).pow(2).mean()
    model.zero_grad()
    loss.backward()
    with torch.no_grad():
        for p in model.parameters():
            p -= 0.1 * p.grad
    flags.append(torch.is_grad_enabled())
stop.set()
thread.join()
print(flags.count(True), flags.count(False), f"{loss.item():.5f} {evaluations[0]:.4f}")

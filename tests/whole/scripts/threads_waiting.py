# The main thread waits for another one that trains, in a call that is looked at: a recording goes before.
# expect: traces>=1, compiled>=0.5
import threading

import torch

done, begin, trained = threading.Event(), threading.Event(), threading.Event()
results = {}


def train():
    begin.wait()
    w = torch.zeros(5, requires_grad=True)
    for step in range(60):
        (grad,) = torch.autograd.grad((w - step).square().sum(), w)
        with torch.no_grad():
            w -= 0.1 * grad
    results["w"] = w.detach()
    trained.set()


def wait(event):
    if event is trained:
        begin.set()
    event.wait()


done.set()
thread = threading.Thread(target=train)
thread.start()
list(map(wait, [done, trained]))
thread.join()
print(f"{results['w'].sum().item():.4f}")

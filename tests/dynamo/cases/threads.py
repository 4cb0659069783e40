# One thread runs compiled code while others run loops of their own.
import threading

import torch

results = {}


def compiled_loop():
    f = torch.compile(lambda x: x.sin() + 1, backend="eager")
    total = torch.zeros(2)
    for i in range(200):
        total = total + f(torch.full((2,), i / 50))
    results["compiled"] = total


def eager_loop(name, scale):
    total = torch.zeros(2)
    for i in range(3000):
        total = total + torch.cos(torch.full((2,), i / 50)) * scale
    results[name] = total


threads = [threading.Thread(target=compiled_loop)] + [threading.Thread(target=eager_loop, args=(f"eager{k}", k)) for k in range(2)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
for name in sorted(results):
    print(name, results[name])

# A second thread computes with tensors while the main thread's loop is hot.
import threading

import torch

results = {}


def work(name, k):
    x = torch.zeros(4)
    for i in range(60):
        x = torch.sin(x * 0.9 + k + i)
    results[name] = x.sum().item()


threads = [threading.Thread(target=work, args=(n, 0.1 * n)) for n in range(3)]
for t in threads:
    t.start()
work("main", 0.5)
for t in threads:
    t.join()
print({str(k): f"{v:.5f}" for k, v in sorted(results.items(), key=lambda kv: str(kv[0]))})

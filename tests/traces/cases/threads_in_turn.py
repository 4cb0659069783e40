# Two threads that run one loop in turn, an iteration each: both go round, and have its trace.
# expect: compiled>=0.4, traces>=1
import threading

import torch

torch.manual_seed(0)
w = torch.randn(8, 8) / 3
locks = [threading.Lock(), threading.Lock()]
locks[1].acquire()
results = {}


def work(k):
    mine, other = locks[k], locks[1 - k]
    x = torch.full((4, 8), 0.2 * (k + 1))
    for _ in range(2500):
        mine.acquire()
        x = torch.tanh(x @ w) + 0.5 * x
        other.release()
    results[k] = round(x.sum().item(), 3)


threads = [threading.Thread(target=work, args=(k,)) for k in range(2)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
print(sorted(results.items()))

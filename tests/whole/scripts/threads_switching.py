# Seven threads run loops of the same two functions and of their own while the interpreter is switched at each chance it gets, and sizes change:
# recordings, compilations and runs of traces of one loop mix.
# expect: traces>=1
import sys, threading, queue
import torch
from torch import nn
sys.setswitchinterval(1e-6)
torch.manual_seed(1)

def step(model, x):
    h = torch.relu(model(x))
    return (h * 2 + 1).sum().item()

def work(seed, out):
    g = torch.Generator().manual_seed(seed)
    model = nn.Linear(4, 3)
    torch.nn.init.constant_(model.weight, 0.1 * seed); torch.nn.init.zeros_(model.bias)
    total = 0.0
    with torch.no_grad():
        for k in range(300):
            x = torch.randn(2 + (k // 40) % 3, 4, generator=g)
            if k % 3 == seed % 3:
                total += step(model, x)
            else:
                total -= step(model, -x)
            y = x
            for j in range(5):
                y = y * 0.5 + x
            total += y.sum().item()
    out[seed] = total

def train(seed, out):
    g = torch.Generator().manual_seed(seed)
    w = torch.zeros(4, requires_grad=True)
    for k in range(200):
        x = torch.randn(8, 4, generator=g)
        loss = ((x @ w - x.sum(1)) ** 2).mean()
        loss.backward()
        with torch.no_grad():
            w -= 0.1 * w.grad
            w.grad = None
    out[seed] = w.sum().item()

def inner(q, results):
    while (x := q.get()) is not None:
        results.append(torch.tanh(x * 2 + 1).sum().item())

out = {}
q = queue.Queue(4); results = []
threads = [threading.Thread(target=work, args=(s, out)) for s in range(1, 4)] + [threading.Thread(target=train, args=(s, out)) for s in range(5, 8)]
threads.append(threading.Thread(target=inner, args=(q, results)))
for t in threads: t.start()
for k in range(200):
    q.put(torch.full((3,), k / 100.0))
q.put(None)
for t in threads: t.join()
print({k: round(out[k], 3) for k in sorted(out)}, round(sum(results), 3))

# A producer thread prepares batches into a bounded queue while the main thread trains on them.
# expect: compiled>=0.3, traces>=2
import queue
import threading

import torch
from torch import nn


def produce(batches, out):
    generator = torch.Generator().manual_seed(5)
    for k in range(batches):
        x = torch.randn(8, 4, generator=generator)
        out.put((x, (x.sum(1, keepdim=True) > 0).float()))
    out.put(None)


torch.manual_seed(138)
model = nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
batches = queue.Queue(maxsize=3)
thread = threading.Thread(target=produce, args=(60, batches))
thread.start()
losses = []
while (batch := batches.get()) is not None:
    x, y = batch
    optimizer.zero_grad()
    loss = nn.functional.binary_cross_entropy_with_logits(model(x), y)
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
thread.join()
print(len(losses), f"{losses[0]:.4f} {losses[-1]:.4f}", f"{model.weight.sum().item():.4f}")

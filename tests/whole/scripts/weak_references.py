# A WeakValueDictionary caches activations that live only as long as somebody holds them; weakref callbacks are counted.
# expect: compiled>=0.05, traces>=1
import gc
import weakref

import torch


class Holder:
    def __init__(self, tensor):
        self.tensor = tensor


cache = weakref.WeakValueDictionary()
dead, kept = [], []
x = torch.linspace(0, 1, 5)
for step in range(50):
    holder = cache.get(step % 7)
    if holder is None:
        holder = Holder(torch.cos(x + step))
        cache[step % 7] = holder
        weakref.finalize(holder, dead.append, step)
    if step % 5 == 0:
        kept.append(holder)
    if len(kept) > 3:
        kept.pop(0)
    x = 0.5 * x + 0.5 * holder.tensor
    del holder
gc.collect()
print(len(dead), sorted(cache.keys()), len(kept), [f"{v:.4f}" for v in x.tolist()])

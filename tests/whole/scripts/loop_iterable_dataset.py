# An IterableDataset whose __iter__ is a generator with state, batched by a DataLoader with drop_last.
# expect: compiled>=0.25, traces>=1
import torch
from torch.utils.data import DataLoader, IterableDataset


class Stream(IterableDataset):
    def __init__(self, length):
        self.length, self.started = length, 0

    def __iter__(self):
        self.started += 1
        level = float(self.started)
        for k in range(self.length):
            level = 0.9 * level + 0.1 * (k % 5)
            yield torch.full((3,), level) + torch.arange(3), level > 1.5


torch.manual_seed(85)
stream = Stream(43)
w, bias = torch.zeros(3), torch.zeros(())
counts = []
for epoch in range(4):
    batches = 0
    for x, high in DataLoader(stream, batch_size=4, drop_last=True):
        p = torch.sigmoid(x @ w + bias)
        error = p - high.float()
        w = w - 0.1 * (error @ x) / len(x)
        bias = bias - 0.1 * error.mean()
        batches += 1
    counts.append(batches)
print(counts, stream.started, high.tolist(), [f"{v:.4f}" for v in w.tolist()], f"{bias.item():.4f}")

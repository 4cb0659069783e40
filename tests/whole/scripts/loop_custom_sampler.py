# A DataLoader with a batch sampler by length and a collate function that pads, over samples of different lengths.
# expect: compiled>=0.1, traces>=1
import torch
from torch.nn.utils.rnn import pad_sequence
from torch.utils.data import DataLoader, Sampler


class ByLength(Sampler):
    def __init__(self, lengths, size):
        self.order = sorted(range(len(lengths)), key=lambda k: (lengths[k], k))
        self.size = size

    def __iter__(self):
        for start in range(0, len(self.order), self.size):
            yield self.order[start:start + self.size]

    def __len__(self):
        return -(-len(self.order) // self.size)


def collate(samples):
    lengths = torch.tensor([len(s) for s in samples])
    padded = pad_sequence(samples, batch_first=True, padding_value=-1.0)
    return padded, torch.arange(padded.size(1)) < lengths.unsqueeze(1)


torch.manual_seed(84)
samples = [torch.randn(2 + k * 7 % 5) for k in range(40)]
loader = DataLoader(samples, batch_sampler=ByLength([len(s) for s in samples], 4), collate_fn=collate)
total, shapes = 0.0, []
for epoch in range(3):
    for padded, mask in loader:
        weights = padded.masked_fill(~mask, float("-inf")).softmax(-1)
        total += (weights * padded.masked_fill(~mask, 0.0)).sum().item()
        shapes.append(tuple(padded.shape))
print(len(loader), sorted(set(shapes)), f"{total:.4f}")

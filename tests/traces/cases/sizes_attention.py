# A transformer layer, sequences of many lengths: two or three recordings, then one trace for all lengths, which is as good as any for one.
# expect: compiled>=0.9, open_sizes>=1, traces<=20
import torch
from torch import nn

torch.manual_seed(0)


class Layer(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.norm = nn.LayerNorm(width)
        self.qkv = nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 2 * width), nn.Linear(2 * width, width)

    def split(self, x):
        batch, length, width = x.size()
        return x.view(batch, length, self.heads, width // self.heads).transpose(1, 2)

    def forward(self, x, mask):
        q, k, v = (self.split(part) for part in self.qkv(self.norm(x)).chunk(3, dim=-1))
        scores = q @ k.transpose(-2, -1) / q.size(-1) ** 0.5
        weights = scores.masked_fill(~mask[:, None, None, :], float("-inf")).softmax(-1)
        mixed = (weights @ v).transpose(1, 2).reshape(*x.shape[:-1], -1)
        if mixed.shape != x.shape:
            raise ValueError(f"{mixed.shape} is not {x.shape}")
        x = x + self.out(mixed)
        return x + self.down(torch.relu(self.up(x)))


layer = Layer(16, 4).eval()
position = torch.randn(64, 16)
lengths = [12] * 16 + [(7 * i) % 37 + 3 for i in range(40)] + [(7 * i) % 37 + 3 for i in range(40)]
batches = [(torch.randn(2, n, 16), torch.arange(n).expand(2, n) < n - 1) for n in lengths]
total = 0.0
with torch.no_grad():
    for x, mask in batches:
        y = layer(x + position[: x.shape[1]], mask)
        total += y.mean().item() + y.shape[1] / 7
        last = y
print(round(total, 4), last.shape, last.sum().item())

# Greedy decoding of a small transformer with a key/value cache: one token at a time, until the end token or the limit.
# expect: compiled>=0.05, traces>=1
import torch
import torch.nn.functional as F
from torch import nn


class Decoder(nn.Module):
    def __init__(self, words=13, width=8, heads=2, layers=2):
        super().__init__()
        self.heads = heads
        self.words, self.places = nn.Embedding(words, width), nn.Embedding(40, width)
        self.qkv = nn.ModuleList(nn.Linear(width, 3 * width) for _ in range(layers))
        self.mix = nn.ModuleList(nn.Sequential(nn.LayerNorm(width), nn.Linear(width, width), nn.GELU()) for _ in range(layers))

    def forward(self, token, place, cache):
        x = self.words(token) + self.places(torch.tensor([place]))
        for k, (qkv, mix) in enumerate(zip(self.qkv, self.mix)):
            q, key, value = (t.view(1, self.heads, 1, -1) for t in qkv(x).chunk(3, dim=-1))
            if cache[k] is not None:
                key, value = torch.cat([cache[k][0], key], 2), torch.cat([cache[k][1], value], 2)
            cache[k] = (key, value)
            x = x + F.scaled_dot_product_attention(q, key, value).reshape(1, -1)
            x = x + mix(x)
        return x @ self.words.weight.t()


torch.manual_seed(153)
model = Decoder().eval()
texts = []
with torch.no_grad():
    for start in (1, 5, 9):
        cache, token, text = [None, None], torch.tensor([start]), [start]
        for place in range(16):
            logits = model(token, place, cache) + 0.3 * torch.randn(13)
            token = logits.argmax(-1)
            text.append(token.item())
            if text[-1] == 0:
                break
        texts.append(text)
print(texts, tuple(cache[0][0].shape), f"{cache[1][1].sum().item():.4f}")

# A small causal transformer block with masks, layer norm and GELU, training.
# expect: compiled>=0.1
import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)
emb, norm, qkv, proj = nn.Embedding(11, 8), nn.LayerNorm(8), nn.Linear(8, 24), nn.Linear(8, 8)
head = nn.Linear(8, 11)
parts = nn.ModuleList([emb, norm, qkv, proj, head])
optimizer = torch.optim.AdamW(parts.parameters(), lr=0.02)
t = torch.randint(11, (3, 9))
mask = torch.ones(8, 8, dtype=torch.bool).tril()
for i in range(40):
    x = emb(t[:, :-1])
    q, k, v = qkv(norm(x)).chunk(3, -1)
    scores = (q @ k.transpose(-2, -1)) / 8 ** 0.5
    y = scores.masked_fill(~mask, float("-inf")).softmax(-1) @ v
    y = y + F.scaled_dot_product_attention(q[:, None], k[:, None], v[:, None], is_causal=True)[:, 0]
    loss = F.cross_entropy(head(F.gelu(x + proj(y))).flatten(0, 1), t[:, 1:].flatten())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if i % 8 == 0:
        print(i, f"{loss.item():.5f}")

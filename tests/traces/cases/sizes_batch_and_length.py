# Batches whose length and, later, number of rows change, as dicts: what has not changed before is recorded again.
# expect: compiled>=0.4, open_sizes>=1
import torch
from torch import nn

torch.manual_seed(1)
embed, rnn_in, head = nn.Embedding(50, 12), nn.Linear(12, 12), nn.Linear(12, 5)


def encode(batch):
    ids = batch["ids"]
    rows, length = ids.shape
    x = torch.tanh(rnn_in(embed(ids)))
    keep = batch["mask"].unsqueeze(-1).to(x.dtype)
    pooled = (x * keep).sum(1) / keep.sum(1).clamp(min=1)
    assert pooled.size(0) == rows and x.numel() == rows * length * 12
    return head(pooled)


shapes = [(4, 6)] * 15 + [(4, 5 + i % 11) for i in range(25)] + [(2 + i % 7, 5 + i % 9) for i in range(50)]
batches = []
for rows, length in shapes:
    ids = torch.randint(0, 50, (rows, length))
    batches.append({"ids": ids, "mask": ids > 4, "name": f"{rows}x{length}"})
seen = []
with torch.no_grad():
    for batch in batches:
        logits = encode(batch)
        seen.append((batch["name"], tuple(logits.shape), round(logits.softmax(-1)[:, 0].sum().item(), 5)))
print(seen)

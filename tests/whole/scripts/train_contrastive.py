# A contrastive loss over normalised embeddings of two views, with a learned temperature that is clamped.
# expect: compiled>=0.7, traces>=1
import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(167)
left, right = nn.Linear(5, 4), nn.Linear(5, 4)
temperature = nn.Parameter(torch.tensor(1.0))
optimizer = torch.optim.AdamW([{"params": [*left.parameters(), *right.parameters()]}, {"params": [temperature], "weight_decay": 0.0}], lr=0.02)
data = torch.randn(8, 5)
hits = []
for step in range(50):
    a = F.normalize(left(data + 0.1 * torch.randn(8, 5)), dim=-1)
    b = F.normalize(right(data), dim=-1)
    logits = a @ b.t() * temperature.exp()
    labels = torch.arange(8)
    loss = (F.cross_entropy(logits, labels) + F.cross_entropy(logits.t(), labels)) / 2
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    temperature.data.clamp_(0, 2)
    hits.append((logits.argmax(1) == labels).sum().item())
print(hits[::8], f"{loss.item():.4f} {temperature.item():.4f}")

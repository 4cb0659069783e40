# Sentences of many lengths through an embedding, a GRU and pooling, one at a time.
# expect: compiled>=0.35, traces>=1
import torch
from torch import nn


class Reader(nn.Module):
    def __init__(self):
        super().__init__()
        self.words = nn.Embedding(20, 6)
        self.gru = nn.GRU(6, 5, batch_first=True)
        self.out = nn.Linear(10, 2)

    def forward(self, ids):
        states, last = self.gru(self.words(ids).unsqueeze(0))
        return self.out(torch.cat([states.max(1).values, last[0]], dim=-1))


torch.manual_seed(119)
reader = Reader().eval()
sentences = [torch.randint(0, 20, (3 + k * 5 % 9,)) for k in range(60)]
totals = {}
with torch.no_grad():
    for ids in sentences:
        scores = reader(ids)
        totals[len(ids)] = totals.get(len(ids), 0.0) + scores[0, 0].item()
print({n: f"{v:.4f}" for n, v in sorted(totals.items())})

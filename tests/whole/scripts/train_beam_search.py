# Beam search over a recurrent scorer: topk over all continuations, states gathered by parent, finished beams set aside.
# expect: compiled>=0.05, traces>=1
import torch
from torch import nn

torch.manual_seed(154)
words, width, beams = 9, 6, 3
embed, cell, out = nn.Embedding(words, width), nn.GRUCell(width, width), nn.Linear(width, words)
results = []
with torch.no_grad():
    for seed in range(6):
        state = torch.randn(1, width).expand(beams, width)
        tokens = torch.full((beams, 1), 1 + seed)
        scores = torch.tensor([0.0] + [float("-inf")] * (beams - 1))
        finished = []
        for length in range(10):
            state = cell(embed(tokens[:, -1]), state)
            total = scores.unsqueeze(1) + (2 * out(state)).log_softmax(-1)
            scores, flat = total.flatten().topk(beams)
            parents, choice = flat // words, flat % words
            state, tokens = state[parents], torch.cat([tokens[parents], choice.unsqueeze(1)], dim=1)
            for k in (choice == 0).nonzero().flatten().tolist():
                finished.append((scores[k].item() / tokens.size(1), tokens[k].tolist()))
                scores[k] = float("-inf")
            if len(finished) >= beams:
                break
        results.append(max(finished, default=(scores[0].item() / tokens.size(1), tokens[0].tolist())))
for score, sequence in results:
    print(f"{score:.4f}", sequence)

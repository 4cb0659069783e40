# List methods and a deque as a window: slices, insert, pop, sort with a key, extend, index, del.
# expect: compiled>=0.7, traces>=1
from collections import deque

import torch

torch.manual_seed(41)
window = deque(maxlen=4)
beams = [(0.0, [0], torch.zeros(3))]
weights = torch.randn(3, 3) * 0.5
for step in range(25):
    grown = []
    for score, path, state in beams:
        scores = torch.log_softmax(weights @ state + torch.tensor([0.1, 0.0, -0.1]), 0)
        for choice, value in enumerate(scores.tolist()):
            grown.append((score + value, path + [choice], state * 0.5 + torch.eye(3)[choice]))
    grown.sort(key=lambda item: item[0], reverse=True)
    del grown[3:]
    beams[:] = grown
    window.append(beams[0][2])
    if len(window) == 4:
        weights = weights + 0.01 * torch.stack(list(window)).sum(0)
best = beams[0][1]
best.insert(0, 9)
last = best.pop()
print(best[:8], last, best.index(9), len(best), best.count(1))
print([f"{score:.3f}" for score, _, _ in beams], f"{weights.sum().item():.4f}", len(window))

# Loops in loops, with a trip count that changes, continue, break and else.
# expect: compiled>=0.28
import torch

x = torch.linspace(0, 1, 6)
log = []
for i in range(25):
    for j in range(i % 4):
        x = torch.sin(x + j)
        if j == 2 and i % 3 == 0:
            break
    else:
        x = x * 0.9
    if i % 5 == 4:
        continue
    for a, b in zip((1, 2, 3), [x, x + 1, x * 2]):
        x = x + 0.01 * a * b
    log.append(round(x.sum().item(), 3))
print(" ".join(f"{v:.3f}" for v in log))

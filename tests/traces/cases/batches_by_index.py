# Batches taken from a list by a computed index, and results that stay alive for some iterations: none may be overwritten by a later one.
# expect: compiled>=0.7
import torch

torch.manual_seed(3)
batches = [(torch.randn(256, 256), torch.randn(256)) for _ in range(4)]
kept = [None] * 3
checks = []


def step(x, y):
    return torch.sigmoid(x) * y - torch.tanh(x)


for i in range(60):
    turn = i % len(batches)
    kept[i % len(kept)] = step(*batches[turn])
    if i % 7 == 6:
        checks.append([f"{t.double().sum().item():.4f}" for t in kept])
for line in checks:
    print(line)
print(len({t.data_ptr() for t in kept}))

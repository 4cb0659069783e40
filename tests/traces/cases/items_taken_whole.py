# Generators whose items max(), min(), sorted(), join(), set() and dict() take whole: what the generator does is part of the trace, in the order of the program.
# expect: compiled>=0.85
import math

import torch

torch.manual_seed(0)
rows = [torch.randn(4, k + 2) for k in range(5)]
seen = []


def numbers():
    for row in rows:
        seen.append(row.shape[1])
        yield row.norm().item()


total = 0.0
for i in range(300):
    largest, smallest = max(r.abs().max().item() for r in rows), min(r.sum().item() for r in rows)
    ordered = sorted((r * i).mean().item() for r in rows)
    names = ",".join(str(int(r.numel() + i % 3)) for r in rows)
    sizes = set(r.shape[1] for r in rows)
    by_size = dict((r.shape[1], (r + i).sum().item()) for r in rows)
    total += largest - smallest + ordered[2] + len(names) + len(sizes) + by_size[3] + math.fsum(numbers())
print(f"{total:.1f}", names, sorted(sizes), len(seen), f"{by_size[6]:.1f}")

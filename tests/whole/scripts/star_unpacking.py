# Star unpacking in assignments, calls, list and dict displays, and for targets.
# expect: compiled>=0.5, traces>=1
import torch


def combine(first, *middle, last, scale=1.0):
    return (first + last + sum(middle, torch.zeros_like(first))) * scale


torch.manual_seed(53)
queue = [torch.randn(3) for _ in range(5)]
samples = [(1, torch.ones(3), "a", "b"), (2, torch.ones(3) * 2, "c")]
tags = []
for step in range(45):
    head, *body, tail = queue
    mixed = combine(head, *body, **{"last": tail, "scale": 0.2})
    for weight, x, *names in samples:
        mixed = mixed + 0.01 * weight * x
        tags += names
    queue = [*body, tail * 0.9, mixed]
    shape = (*mixed.shape, *[1] * (step % 2))
    mixed.reshape(*shape)
print(len(queue), len(tags), tags[-3:], shape, [f"{q.sum().item():.4f}" for q in queue])

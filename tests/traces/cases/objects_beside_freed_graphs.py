# Objects with graphs that end in what a backward() frees: they stay behind it, with the graph that eager leaves them.
# expect: traces>=1, compiled>=0.8
import weakref

import torch
import torch.nn as nn

torch.manual_seed(0)
w = nn.Parameter(torch.randn(6, 5) * 0.3)
optimizer = torch.optim.SGD([w], lr=0.05)
kept = []
lines = []
layer_of = weakref.ref(w)
for i in range(90):
    h = torch.randn(4, 6) @ layer_of()
    scores = torch.log_softmax(h, 1)
    top = scores.topk(2)  # one object with both results
    kept.append(scores.sum(1))
    optimizer.zero_grad()
    loss = -scores[:, 0].mean()
    loss.backward()
    optimizer.step()
    if i % 17 == 5:
        lines.append((top.values.grad_fn.name(), kept[-1].grad_fn.name(), top.values.requires_grad, len(top.values.grad_fn.next_functions)))
        for value in (top.values, kept[-1]):
            try:
                value.sum().backward()
                lines.append("no error")
            except RuntimeError as error:
                lines.append(type(error).__name__)
    if i % 30 == 29:
        lines.append(f"{loss.item():.4f} {top.values.sum().item():.4f} {kept[-1].sum().item():.4f}")
        kept.clear()
print(*lines, sep="\n")

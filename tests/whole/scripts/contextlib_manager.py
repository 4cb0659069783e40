# contextlib.contextmanager, nullcontext, suppress and closing around the parts of a step.
# expect: compiled>=0.65, traces>=1
import contextlib

import torch
from torch import nn

events = []


@contextlib.contextmanager
def frozen(module):
    flags = [p.requires_grad for p in module.parameters()]
    module.requires_grad_(False)
    try:
        yield module
    finally:
        for p, flag in zip(module.parameters(), flags):
            p.requires_grad_(flag)
        events.append("thawed")


torch.manual_seed(31)
body, head = nn.Linear(4, 5), nn.Linear(5, 1)
optimizer = torch.optim.SGD([*body.parameters(), *head.parameters()], lr=0.1)
x = torch.randn(8, 4)
for step in range(40):
    context = frozen(body) if step < 20 else contextlib.nullcontext(body)
    optimizer.zero_grad()
    with context as part:
        loss = (head(torch.tanh(part(x))) - 1).pow(2).mean()
        loss.backward()
    with contextlib.suppress(KeyError):
        events.append({10: "ten"}[step])
    optimizer.step()
print(len(events), [e for e in events if e != "thawed"], f"{loss.item():.5f}")
print(f"{body.weight.sum().item():.4f} {head.weight.sum().item():.4f}")

# Parameter groups with options of their own: no decay for biases, a smaller rate for the body, a group added later.
# expect: compiled>=0.75, traces>=1
import torch
from torch import nn

torch.manual_seed(142)
body, head, extra = nn.Linear(5, 8), nn.Linear(8, 2), nn.Linear(5, 2, bias=False)
decayed = [p for m in (body, head) for n, p in m.named_parameters() if n == "weight"]
plain = [p for m in (body, head) for n, p in m.named_parameters() if n == "bias"]
optimizer = torch.optim.AdamW([{"params": decayed, "weight_decay": 0.1}, {"params": plain, "weight_decay": 0.0, "lr": 0.005}], lr=0.02)
x, y = torch.randn(12, 5), torch.arange(12) % 2
for step in range(60):
    if step == 30:
        optimizer.add_param_group({"params": list(extra.parameters()), "lr": 0.05})
    if step == 45:
        for group in optimizer.param_groups:
            group["lr"] *= 0.1
    optimizer.zero_grad()
    loss = nn.functional.cross_entropy(head(torch.relu(body(x))) + (extra(x) if step >= 30 else 0), y)
    loss.backward()
    optimizer.step()
print(len(optimizer.param_groups), [f"{g['lr']:.4f}" for g in optimizer.param_groups], f"{loss.item():.5f}")
print(f"{body.weight.abs().sum().item():.4f} {extra.weight.sum().item():.4f}")

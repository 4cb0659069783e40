# Optimizers over lists of tensors: their lists of numbers change in each step (the correction of Adam's bias), one of them for each tensor.
# expect: compiled>=0.8
import torch
import torch.nn.functional as F
from torch import nn

for make in (torch.optim.Adam, torch.optim.AdamW, torch.optim.NAdam, torch.optim.RAdam):
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(6, 8), nn.GELU(), nn.Linear(8, 3))
    optimizer = make(model.parameters(), lr=1e-2, foreach=True)
    x, y = torch.randn(10, 6), torch.randint(0, 3, (10,))
    for step in range(40):
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
    print(make.__name__, f"{loss.item():.5f}", f"{sum(p.sum().item() for p in model.parameters()):.4f}")
tensors = [torch.ones(3), torch.ones(2)]
for step in range(30):
    torch._foreach_add_(tensors, [0.5 * step, 0.25])
    torch._foreach_mul_(tensors, (1.0, 1 / (1 + step)))
print(tensors)

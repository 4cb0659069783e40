# Warm-up and cosine chained by SequentialLR, and ReduceLROnPlateau fed with the loss.
import torch
from torch import nn
from torch.optim import lr_scheduler

torch.manual_seed(143)
models = [nn.Linear(4, 1), nn.Linear(4, 1)]
optimizers = [torch.optim.SGD(m.parameters(), lr=0.1, momentum=0.5) for m in models]
chained = lr_scheduler.SequentialLR(optimizers[0], [lr_scheduler.LinearLR(optimizers[0], 0.1, total_iters=10),
                                                    lr_scheduler.CosineAnnealingLR(optimizers[0], T_max=40)], milestones=[10])
plateau = lr_scheduler.ReduceLROnPlateau(optimizers[1], factor=0.5, patience=3, threshold=0.05)
x = torch.randn(16, 4)
y = x.pow(2).mean(1, keepdim=True)
rates = []
for step in range(50):
    losses = []
    for model, optimizer in zip(models, optimizers):
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(model(x), y)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    chained.step()
    plateau.step(losses[1])
    rates.append((optimizers[0].param_groups[0]["lr"], optimizers[1].param_groups[0]["lr"]))
print([f"{a:.4f} {b:.5f}" for a, b in rates[::8]], [f"{v:.5f}" for v in losses])

# Schedulers change the learning rate while the loop runs: StepLR by steps, cosine continuously.
# expect: compiled>=0.7
import torch
from torch import nn

for make in (lambda o: torch.optim.lr_scheduler.StepLR(o, 7, 0.5),
             lambda o: torch.optim.lr_scheduler.CosineAnnealingLR(o, 40),
             lambda o: torch.optim.lr_scheduler.LambdaLR(o, lambda e: 1 / (1 + e))):
    torch.manual_seed(0)
    model = nn.Linear(4, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.2)
    scheduler = make(optimizer)
    x, y = torch.randn(16, 4), torch.randn(16, 1)
    for i in range(40):
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(model(x), y)
        loss.backward()
        optimizer.step()
        scheduler.step()
    print(f"{loss.item():.6f} {scheduler.get_last_lr()[0]:.8f} {model.weight.sum().item():.6f}")

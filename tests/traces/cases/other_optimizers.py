# RMSprop, Adagrad, Adam with amsgrad and NAdam, each for some steps.
import torch
from torch import nn

for make in (lambda p: torch.optim.RMSprop(p, lr=0.01), lambda p: torch.optim.Adagrad(p, lr=0.05),
             lambda p: torch.optim.Adam(p, lr=0.01, amsgrad=True), lambda p: torch.optim.NAdam(p, lr=0.01)):
    torch.manual_seed(4)
    model = nn.Linear(5, 2)
    optimizer = make(model.parameters())
    x, y = torch.randn(20, 5), torch.randn(20, 2)
    for i in range(25):
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(model(x), y)
        loss.backward()
        optimizer.step()
    print(type(optimizer).__name__, f"{loss.item():.6f}", [f"{v:.5f}" for v in model.bias.tolist()])

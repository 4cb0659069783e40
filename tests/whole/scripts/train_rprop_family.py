# Several optimizers in turn on copies of one model: their losses after the same steps.
# expect: compiled>=0.8, traces>=1
import copy

import torch
from torch import nn

torch.manual_seed(162)
base = nn.Linear(4, 2)
x, y = torch.randn(12, 4), torch.randn(12, 2)
makers = {
    "rmsprop": lambda p: torch.optim.RMSprop(p, lr=0.01, momentum=0.5, centered=True),
    "adamax": lambda p: torch.optim.Adamax(p, lr=0.02),
    "adadelta": lambda p: torch.optim.Adadelta(p, lr=1.0),
    "rprop": lambda p: torch.optim.Rprop(p, lr=0.01),
    "radam": lambda p: torch.optim.RAdam(p, lr=0.02),
}
for name, make in makers.items():
    model = copy.deepcopy(base)
    optimizer = make(model.parameters())
    for step in range(25):
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(model(x), y)
        loss.backward()
        optimizer.step()
    print(name, f"{loss.item():.5f}", f"{model.weight.abs().sum().item():.4f}")

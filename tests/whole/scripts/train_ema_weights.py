# An exponential moving average of a model by swa_utils.AveragedModel and by hand, evaluated in between.
# expect: compiled>=0.5, traces>=1
import copy

import torch
from torch import nn
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn

torch.manual_seed(151)
model = nn.Linear(5, 1)
averaged = AveragedModel(model, multi_avg_fn=get_ema_multi_avg_fn(0.9))
by_hand = copy.deepcopy(model).requires_grad_(False)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
gaps = []
for step in range(50):
    x = torch.randn(8, 5)
    loss = (model(x) - x[:, :1] * 2).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    averaged.update_parameters(model)
    with torch.no_grad():
        for p, q in zip(by_hand.parameters(), model.parameters()):
            p.mul_(0.9).add_(q, alpha=0.1) if step else p.copy_(q)
        if step % 10 == 9:
            gaps.append((averaged(x) - model(x)).abs().mean().item())
print([f"{g:.5f}" for g in gaps], averaged.n_averaged.item(), torch.allclose(averaged.module.weight, by_hand.weight, atol=1e-6))

"""Averages of weights, stochastic (with its schedule and update_bn) and exponential, after PyTorch's notes on torch.optim.swa_utils."""

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.optim.swa_utils import SWALR, AveragedModel, get_ema_multi_avg_fn, update_bn
from torch.utils.data import DataLoader, TensorDataset

from synthetic import Digits

torch.manual_seed(9)


def loader_of(count, seed, shuffle):
    digits = Digits(count, size=16, seed=seed)
    return DataLoader(TensorDataset(digits.data, digits.targets), batch_size=32, shuffle=shuffle)


class Net(nn.Sequential):  # without maxima: which of two nearly equal ones wins would decide how training goes on
    def __init__(self):
        super().__init__(nn.Conv2d(1, 8, 3, padding=1), nn.BatchNorm2d(8), nn.SiLU(), nn.AvgPool2d(2), nn.Conv2d(8, 16, 3, padding=1), nn.BatchNorm2d(16),
                         nn.SiLU(), nn.AdaptiveAvgPool2d(2), nn.Flatten(), nn.Linear(64, 10))


@torch.no_grad()
def evaluate(model, loader):
    model.eval()
    loss, right, seen = 0.0, 0, 0
    for x, y in loader:
        out = model(x)
        loss += F.cross_entropy(out, y, reduction="sum").item()
        right += (out.argmax(1) == y).sum().item()
        seen += len(y)
    return f"{loss / seen:.4f} {right}/{seen}"


train_loader, test_loader = loader_of(512, 1, True), loader_of(128, 2, False)
model = Net()
swa_model = AveragedModel(model)
ema_model = AveragedModel(model, multi_avg_fn=get_ema_multi_avg_fn(0.9), use_buffers=True)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9, weight_decay=1e-4)
scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=6)
swa_start = 4
swa_scheduler = SWALR(optimizer, anneal_strategy="linear", anneal_epochs=2, swa_lr=0.05)
for epoch in range(8):
    model.train()
    total = 0.0
    for x, y in train_loader:
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        ema_model.update_parameters(model)
        total += loss.item()
    if epoch >= swa_start:
        swa_model.update_parameters(model)
        swa_scheduler.step()
    else:
        scheduler.step()
    print(f"epoch {epoch} lr {optimizer.param_groups[0]['lr']:.5f} train {total / len(train_loader):.4f} test {evaluate(model, test_loader)} ema {evaluate(ema_model, test_loader)}")
update_bn(train_loader, swa_model)
print("swa", evaluate(swa_model, test_loader), "of", int(swa_model.n_averaged), "models")
torch.optim.swa_utils.update_bn(train_loader, ema_model)
print("ema", evaluate(ema_model, test_loader), "running variance", [round(v, 4) for v in ema_model.module[1].running_var[:3].tolist()])

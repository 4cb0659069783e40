"""One trunk, three tasks, each weighted by a learned uncertainty, after common multi-task code."""

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, random_split

from synthetic import Shapes


class Trunk(nn.Module):
    def __init__(self):
        super().__init__()
        self.features = nn.Sequential(nn.Conv2d(3, 12, 3, stride=2, padding=1), nn.BatchNorm2d(12), nn.ReLU6(), nn.Conv2d(12, 24, 3, stride=2, padding=1),
                                      nn.BatchNorm2d(24), nn.ReLU6())
        self.heads = nn.ModuleDict({"colour": nn.Linear(24, 3), "kind": nn.Linear(24, 1), "place": nn.Linear(24 * 64, 2)})

    def forward(self, x):
        h = self.features(x)
        pooled = h.mean(dim=(2, 3))
        return {"colour": self.heads["colour"](pooled), "kind": self.heads["kind"](pooled).squeeze(-1), "place": torch.sigmoid(self.heads["place"](h.flatten(1)))}


class MultiTaskLoss(nn.Module):
    def __init__(self, names):
        super().__init__()
        self.log_vars = nn.ParameterDict({name: nn.Parameter(torch.zeros(())) for name in names})

    def forward(self, losses):
        return sum(torch.exp(-self.log_vars[name]) * loss + self.log_vars[name] for name, loss in losses.items())


def centres(masks):
    size = masks.shape[-1]
    axis = torch.arange(size) / size
    weight = masks.sum(dim=(1, 2, 3))
    return torch.stack([(masks.sum(dim=(1, 3)) * axis).sum(1) / weight, (masks.sum(dim=(1, 2)) * axis).sum(1) / weight], dim=1)


def losses_of(outputs, masks, targets):
    return {"colour": F.cross_entropy(outputs["colour"], targets // 2, label_smoothing=0.05),
            "kind": F.binary_cross_entropy_with_logits(outputs["kind"], (targets % 2).float()),
            "place": F.smooth_l1_loss(outputs["place"], centres(masks))}


def main():
    torch.manual_seed(12)
    train_set, test_set = random_split(Shapes(384, seed=2), [320, 64])
    train_loader = DataLoader(train_set, batch_size=16, shuffle=True, drop_last=True)
    test_loader = DataLoader(test_set, batch_size=32)
    model, weighting = Trunk(), MultiTaskLoss(["colour", "kind", "place"])
    optimizer = torch.optim.SGD([{"params": model.parameters(), "lr": 0.05}, {"params": weighting.parameters(), "lr": 0.01, "momentum": 0.0}],
                                momentum=0.9, nesterov=True)
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=4)
    for epoch in range(4):
        model.train()
        sums = dict.fromkeys(("colour", "kind", "place"), 0.0)
        for images, masks, targets in train_loader:
            losses = losses_of(model(images), masks, targets)
            total = weighting(losses)
            optimizer.zero_grad()
            total.backward()
            optimizer.step()
            for name, loss in losses.items():
                sums[name] += loss.item()
        scheduler.step()
        model.eval()
        right, distance, seen = {"colour": 0, "kind": 0}, 0.0, 0
        with torch.no_grad():
            for images, masks, targets in test_loader:
                outputs = model(images)
                right["colour"] += (outputs["colour"].argmax(1) == targets // 2).sum().item()
                right["kind"] += ((outputs["kind"] > 0) == (targets % 2).bool()).sum().item()
                distance += torch.cdist(outputs["place"][:, None], centres(masks)[:, None]).sum().item()
                seen += len(targets)
        print(f"epoch {epoch}", {name: round(value / len(train_loader), 4) for name, value in sums.items()}, f"total {total.item():.4f}",
              f"right {right['colour']}/{seen} {right['kind']}/{seen} off by {distance / seen:.4f}",
              {name: round(v.item(), 4) for name, v in weighting.log_vars.items()}, "lr", ["%.4f" % group["lr"] for group in optimizer.param_groups])


if __name__ == "__main__":
    main()

"""A classifier whose epochs torchmetrics sums up, after its quick start."""

import torch
import torch.nn as nn
from torch.utils.data import DataLoader
from torchmetrics import MeanMetric, MetricCollection
from torchmetrics.aggregation import RunningMean
from torchmetrics.classification import MulticlassAccuracy, MulticlassAUROC, MulticlassCalibrationError, MulticlassConfusionMatrix, MulticlassF1Score, MulticlassPrecision

from digits import Digits

torch.manual_seed(15)
model = nn.Sequential(nn.Flatten(), nn.Linear(196, 40), nn.ReLU(), nn.Dropout(0.2), nn.Linear(40, 10))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
criterion = nn.CrossEntropyLoss()
train_loader = DataLoader(Digits(320, size=14, seed=1), batch_size=16, shuffle=True)
valid_loader = DataLoader(Digits(96, size=14, seed=2), batch_size=32)
metrics = MetricCollection({"accuracy": MulticlassAccuracy(10), "f1": MulticlassF1Score(10, average="macro"), "precision": MulticlassPrecision(10, average="weighted")})
train_metrics, valid_metrics = metrics.clone(prefix="train_"), metrics.clone(prefix="valid_")
confusion, auroc, calibration = MulticlassConfusionMatrix(10), MulticlassAUROC(10), MulticlassCalibrationError(10, n_bins=5)
mean_loss, running = MeanMetric(), RunningMean(window=5)
for epoch in range(5):
    model.train()
    for step, (images, targets) in enumerate(train_loader):
        logits = model(images)
        loss = criterion(logits, targets)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        mean_loss.update(loss.detach(), weight=len(targets))
        running(loss.detach())
        batch = train_metrics(logits, targets)
        if step % 10 == 9:
            print(f"epoch {epoch} step {step}: accuracy of the batch {batch['train_accuracy'].item():.4f} running loss {running.compute().item():.4f}")
    print(f"epoch {epoch} loss {mean_loss.compute().item():.4f}", {name: round(value.item(), 4) for name, value in train_metrics.compute().items()})
    mean_loss.reset()
    train_metrics.reset()
    model.eval()
    with torch.no_grad():
        for images, targets in valid_loader:
            logits = model(images)
            valid_metrics.update(logits, targets)
            confusion.update(logits, targets)
            auroc.update(logits, targets)
            calibration.update(logits.softmax(-1), targets)
    print({name: round(value.item(), 4) for name, value in valid_metrics.compute().items()}, f"auroc {auroc.compute().item():.4f} calibration {calibration.compute().item():.4f}")
    valid_metrics.reset()
print("confusion", confusion.compute().diagonal().tolist())

"""Contrastive learning of two views of an image with a memory-free InfoNCE loss, then a linear classifier, after SimCLR in PyTorch."""

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader

from synthetic import Digits


class ContrastiveLearningViewGenerator:
    """Two random views: moved, erased in part, with other contrast."""

    def __init__(self, generator):
        self.generator = generator

    def view(self, x):
        dy, dx = torch.randint(-2, 3, (2,), generator=self.generator).tolist()
        x = torch.roll(x, (dy, dx), dims=(-2, -1)).clone()
        top, left = torch.randint(0, 12, (2,), generator=self.generator).tolist()
        x[..., top:top + 4, left:left + 4] = 0
        if torch.rand((), generator=self.generator) < 0.5:
            x = x * (0.6 + 0.8 * torch.rand((), generator=self.generator))
        return x

    def __call__(self, x):
        return [self.view(x) for _ in range(2)]


class Encoder(nn.Module):
    def __init__(self, out_dim=16):
        super().__init__()
        self.backbone = nn.Sequential(nn.Conv2d(1, 12, 3, stride=2, padding=1, bias=False), nn.BatchNorm2d(12), nn.ReLU(inplace=True),
                                      nn.Conv2d(12, 24, 3, stride=2, padding=1, bias=False), nn.BatchNorm2d(24), nn.ReLU(inplace=True), nn.AdaptiveAvgPool2d(2), nn.Flatten())
        self.projection = nn.Sequential(nn.Linear(96, 48), nn.ReLU(), nn.Linear(48, out_dim))

    def forward(self, x):
        return self.projection(self.backbone(x))


class SimCLR:
    def __init__(self, model, optimizer, scheduler, batch_size, temperature=0.2, n_views=2):
        self.model, self.optimizer, self.scheduler = model, optimizer, scheduler
        self.batch_size, self.temperature, self.n_views = batch_size, temperature, n_views
        self.criterion = nn.CrossEntropyLoss()

    def info_nce_loss(self, features):
        labels = torch.cat([torch.arange(self.batch_size) for _ in range(self.n_views)], dim=0)
        labels = (labels.unsqueeze(0) == labels.unsqueeze(1)).float()
        features = F.normalize(features, dim=1)
        similarity_matrix = torch.matmul(features, features.T)
        mask = torch.eye(labels.shape[0], dtype=torch.bool)
        labels = labels[~mask].view(labels.shape[0], -1)
        similarity_matrix = similarity_matrix[~mask].view(similarity_matrix.shape[0], -1)
        positives = similarity_matrix[labels.bool()].view(labels.shape[0], -1)
        negatives = similarity_matrix[~labels.bool()].view(similarity_matrix.shape[0], -1)
        logits = torch.cat([positives, negatives], dim=1)
        return logits / self.temperature, torch.zeros(logits.shape[0], dtype=torch.long)

    def train(self, loader, epochs):
        n_iter = 0
        for epoch_counter in range(epochs):
            for images, _ in loader:
                images = torch.cat(images, dim=0)
                logits, labels = self.info_nce_loss(self.model(images))
                loss = self.criterion(logits, labels)
                self.optimizer.zero_grad()
                loss.backward()
                self.optimizer.step()
                if n_iter % 5 == 0:
                    top1 = (logits.argmax(1) == labels).float().mean()
                    top5 = (logits.topk(5, 1).indices == labels[:, None]).any(1).float().mean()
                    print(f"{n_iter}: loss {loss.item():.4f} top1 {100 * top1.item():.2f} top5 {100 * top5.item():.2f} lr {self.scheduler.get_last_lr()[0]:.6f}")
                n_iter += 1
            if epoch_counter >= 1:
                self.scheduler.step()


def linear_probe(model, train_set, test_set):
    model.eval()
    with torch.no_grad():
        train_x, test_x = model.backbone(train_set.data), model.backbone(test_set.data)
    probe = nn.Linear(train_x.shape[1], 10)
    optimizer = torch.optim.Adam(probe.parameters(), lr=0.05, weight_decay=1e-4)
    for step in range(80):
        loss = F.cross_entropy(probe(train_x), train_set.targets)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(f"linear probe: loss {loss.item():.4f}, test {(probe(test_x).argmax(1) == test_set.targets).float().mean().item():.3f}")


def main():
    torch.manual_seed(4)
    views = ContrastiveLearningViewGenerator(torch.Generator().manual_seed(17))
    loader = DataLoader(Digits(320, size=16, seed=1, transform=views), batch_size=32, shuffle=True, drop_last=True)
    model = Encoder()
    optimizer = torch.optim.Adam(model.parameters(), 3e-3, weight_decay=1e-4)
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=len(loader), eta_min=0, last_epoch=-1)
    SimCLR(model, optimizer, scheduler, batch_size=32).train(loader, 5)
    linear_probe(model, Digits(256, size=16, seed=2), Digits(128, size=16, seed=3))


if __name__ == "__main__":
    main()

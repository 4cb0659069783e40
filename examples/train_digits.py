"""Train two small networks on the handwritten digits that come with scikit-learn.

Usage:    python examples/train_digits.py [--model mlp|cnn|both] [--epochs N] [--seed N]
Reads:    sklearn.datasets.load_digits: 1,797 images of 8x8 pixels, ten classes; no download.
Prints:   the mean training loss and accuracy of each epoch, then the accuracy on 360 held-out images.
Fixed:    the same seed gives the same numbers from run to run.
Tests:    tests/traces/run.py --examples
"""

import argparse

import torch
from sklearn.datasets import load_digits
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

BATCH_SIZE = 64
TEST_IMAGES = 360


class Mlp(nn.Module):
    """64 pixels -> 128 -> 128 -> 10 logits."""

    def __init__(self, hidden=128):
        super().__init__()
        self.layers = nn.Sequential(
            nn.Flatten(),
            nn.Linear(64, hidden),
            nn.ReLU(),
            nn.Linear(hidden, hidden),
            nn.ReLU(),
            nn.Linear(hidden, 10),
        )

    def forward(self, images):
        return self.layers(images)


class Cnn(nn.Module):
    """Two 3x3 convolutions, each with pooling (8x8 -> 4x4 -> 2x2), and a linear classifier."""

    def __init__(self, channels=16):
        super().__init__()
        self.conv1 = nn.Conv2d(1, channels, 3, padding=1)
        self.conv2 = nn.Conv2d(channels, 2 * channels, 3, padding=1)
        self.pool = nn.MaxPool2d(2)
        self.classifier = nn.Linear(2 * channels * 2 * 2, 10)

    def forward(self, images):
        x = self.pool(torch.relu(self.conv1(images)))
        x = self.pool(torch.relu(self.conv2(x)))
        return self.classifier(x.flatten(1))


def load_data(seed):
    """The digits as (train set, test set), shuffled once; images are [N, 1, 8, 8] in 0..1."""
    digits = load_digits()
    images = torch.tensor(digits.images, dtype=torch.float32).unsqueeze(1) / 16.0
    labels = torch.tensor(digits.target, dtype=torch.int64)
    order = torch.randperm(len(images), generator=torch.Generator().manual_seed(seed))
    images, labels = images[order], labels[order]
    train = TensorDataset(images[TEST_IMAGES:], labels[TEST_IMAGES:])
    test = TensorDataset(images[:TEST_IMAGES], labels[:TEST_IMAGES])
    return train, test


def train_one_epoch(model, loader, criterion, optimizer):
    """One pass over the training set; returns the mean loss and the accuracy seen while training."""
    model.train()
    running_loss = 0.0
    correct = 0
    seen = 0
    for images, labels in loader:
        optimizer.zero_grad()
        logits = model(images)
        loss = criterion(logits, labels)
        loss.backward()
        optimizer.step()

        running_loss += loss.item() * len(labels)
        correct += (logits.argmax(dim=1) == labels).sum().item()
        seen += len(labels)
    return running_loss / seen, correct / seen


@torch.no_grad()
def evaluate(model, loader):
    """The share of images in `loader` that the model classifies correctly."""
    model.eval()
    correct = 0
    seen = 0
    for images, labels in loader:
        predicted = model(images).argmax(dim=1)
        correct += (predicted == labels).sum().item()
        seen += len(labels)
    return correct / seen


def main():
    parser = argparse.ArgumentParser(description="Train small networks on scikit-learn's digits.")
    parser.add_argument("--model", choices=("mlp", "cnn", "both"), default="both")
    parser.add_argument("--epochs", type=int, help="passes over the data (default: 25 mlp, 15 cnn)")
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()

    train_set, test_set = load_data(args.seed)
    test_loader = DataLoader(test_set, batch_size=BATCH_SIZE)

    for name in ("mlp", "cnn") if args.model == "both" else (args.model,):
        torch.manual_seed(args.seed)
        train_loader = DataLoader(train_set, batch_size=BATCH_SIZE, shuffle=True, drop_last=True)
        criterion = nn.CrossEntropyLoss()
        if name == "mlp":
            model = Mlp()
            optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
            epochs = args.epochs or 25
        else:
            model = Cnn()
            optimizer = torch.optim.SGD(model.parameters(), lr=0.02, momentum=0.9)
            epochs = args.epochs or 15

        parameters = sum(p.numel() for p in model.parameters())
        print(f"{name}: {parameters} parameters, {len(train_set)} training images")
        for epoch in range(1, epochs + 1):
            loss, accuracy = train_one_epoch(model, train_loader, criterion, optimizer)
            print(f"{name} epoch {epoch:2d}  loss {loss:.6f}  accuracy {accuracy:.4f}")
        print(f"{name} test accuracy {evaluate(model, test_loader):.6f}")


if __name__ == "__main__":
    main()

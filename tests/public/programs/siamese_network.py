"""A siamese network: are two digits the same? After pytorch/examples' siamese_network."""

import argparse
import os
import random
import tempfile

import torch
import torch.nn as nn
import torch.nn.functional as F
import torch.optim as optim
from torch.optim.lr_scheduler import StepLR
from torch.utils.data import DataLoader, Dataset

from synthetic import Digits


class SiameseNetwork(nn.Module):
    def __init__(self):
        super().__init__()
        self.cnn = nn.Sequential(nn.Conv2d(1, 8, 5, stride=2, bias=False), nn.BatchNorm2d(8), nn.ReLU(inplace=True), nn.MaxPool2d(2),
                                 nn.Conv2d(8, 16, 3, bias=False), nn.BatchNorm2d(16), nn.ReLU(inplace=True), nn.AdaptiveAvgPool2d(2))
        self.fc = nn.Sequential(nn.Linear(16 * 4 * 2, 64), nn.ReLU(inplace=True), nn.Linear(64, 1))
        self.sigmoid = nn.Sigmoid()
        self.cnn.apply(self.init_weights)
        self.fc.apply(self.init_weights)

    def init_weights(self, m):
        if isinstance(m, nn.Linear):
            torch.nn.init.xavier_uniform_(m.weight)
            m.bias.data.fill_(0.01)

    def forward_once(self, x):
        output = self.cnn(x)
        return output.view(output.size()[0], -1)

    def forward(self, input1, input2):
        output = torch.cat((self.forward_once(input1), self.forward_once(input2)), 1)
        return self.sigmoid(self.fc(output))


class Matcher(Dataset):
    """Pairs: every second one of the same class."""

    def __init__(self, count, seed):
        self.dataset = Digits(count, seed=seed)
        self.draw = random.Random(seed)
        self.group_examples = {i: torch.nonzero(self.dataset.targets == i).flatten().tolist() for i in range(10)}

    def __len__(self):
        return len(self.dataset)

    def __getitem__(self, index):
        selected = self.draw.randint(0, 9)
        first = self.draw.choice(self.group_examples[selected])
        if index % 2 == 0:
            second = self.draw.choice(self.group_examples[selected])
            target = torch.tensor(1, dtype=torch.float)
        else:
            other = self.draw.choice([k for k in range(10) if k != selected])
            second = self.draw.choice(self.group_examples[other])
            target = torch.tensor(0, dtype=torch.float)
        return self.dataset.data[first].clone(), self.dataset.data[second].clone(), target


def train(args, model, train_loader, optimizer, epoch):
    model.train()
    criterion = nn.BCELoss()
    for batch_idx, (images_1, images_2, targets) in enumerate(train_loader):
        optimizer.zero_grad()
        outputs = model(images_1, images_2).squeeze()
        loss = criterion(outputs, targets)
        loss.backward()
        optimizer.step()
        if batch_idx % args.log_interval == 0:
            print("Train Epoch: {} [{}/{} ({:.0f}%)]\tLoss: {:.5f}".format(
                epoch, batch_idx * len(images_1), len(train_loader.dataset), 100.0 * batch_idx / len(train_loader), loss.item()))


def test(model, test_loader):
    model.eval()
    test_loss, correct = 0, 0
    criterion = nn.BCELoss()
    with torch.no_grad():
        for images_1, images_2, targets in test_loader:
            outputs = model(images_1, images_2).squeeze()
            test_loss += criterion(outputs, targets).sum().item()
            pred = torch.where(outputs > 0.5, 1, 0)
            correct += pred.eq(targets.view_as(pred)).sum().item()
    print("\nTest set: Average loss: {:.4f}, Accuracy: {}/{}\n".format(test_loss / len(test_loader.dataset), correct, len(test_loader.dataset)))


def main():
    parser = argparse.ArgumentParser(description="Siamese network")
    parser.add_argument("--batch-size", type=int, default=32)
    parser.add_argument("--epochs", type=int, default=4)
    parser.add_argument("--lr", type=float, default=0.5)
    parser.add_argument("--gamma", type=float, default=0.7)
    parser.add_argument("--log-interval", type=int, default=5)
    args = parser.parse_args()
    torch.manual_seed(1)
    train_loader = DataLoader(Matcher(512, 1), batch_size=args.batch_size, shuffle=True)
    test_loader = DataLoader(Matcher(128, 2), batch_size=64)
    model = SiameseNetwork()
    optimizer = optim.Adadelta(model.parameters(), lr=args.lr)
    scheduler = StepLR(optimizer, step_size=1, gamma=args.gamma)
    for epoch in range(1, args.epochs + 1):
        train(args, model, train_loader, optimizer, epoch)
        test(model, test_loader)
        scheduler.step()
    with tempfile.TemporaryDirectory() as folder:
        torch.save(model.state_dict(), os.path.join(folder, "siamese_network.pt"))
        again = SiameseNetwork()
        again.load_state_dict(torch.load(os.path.join(folder, "siamese_network.pt"), weights_only=True))
    test(again, test_loader)


if __name__ == "__main__":
    main()

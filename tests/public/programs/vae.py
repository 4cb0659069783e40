"""A variational autoencoder on digits, after pytorch/examples' vae."""

import argparse

import torch
from torch import nn, optim
from torch.nn import functional as F
from torch.utils.data import DataLoader

from synthetic import Digits

parser = argparse.ArgumentParser(description="VAE")
parser.add_argument("--batch-size", type=int, default=32)
parser.add_argument("--epochs", type=int, default=3)
parser.add_argument("--seed", type=int, default=1)
parser.add_argument("--log-interval", type=int, default=8)
args = parser.parse_args()

torch.manual_seed(args.seed)
train_loader = DataLoader(Digits(640, seed=1), batch_size=args.batch_size, shuffle=True)
test_loader = DataLoader(Digits(128, seed=2), batch_size=args.batch_size, shuffle=False)


class VAE(nn.Module):
    def __init__(self):
        super().__init__()
        self.hidden = nn.Linear(784, 200)
        self.mean = nn.Linear(200, 10)
        self.log_variance = nn.Linear(200, 10)
        self.widen = nn.Linear(10, 200)
        self.out = nn.Linear(200, 784)

    def encode(self, x):
        h = F.relu(self.hidden(x))
        return self.mean(h), self.log_variance(h)

    def reparameterize(self, mean, log_variance):
        std = torch.exp(0.5 * log_variance)
        return mean + torch.randn_like(std) * std

    def decode(self, z):
        return torch.sigmoid(self.out(F.relu(self.widen(z))))

    def forward(self, x):
        mean, log_variance = self.encode(x.view(-1, 784))
        return self.decode(self.reparameterize(mean, log_variance)), mean, log_variance


model = VAE()
optimizer = optim.Adam(model.parameters(), lr=1e-3)


def loss_function(recon, x, mean, log_variance):
    bce = F.binary_cross_entropy(recon, x.view(-1, 784), reduction="sum")
    divergence = -0.5 * torch.sum(1 + log_variance - mean.pow(2) - log_variance.exp())
    return bce + divergence


def train(epoch):
    model.train()
    total = 0
    for batch, (data, _) in enumerate(train_loader):
        optimizer.zero_grad()
        recon, mean, log_variance = model(data)
        loss = loss_function(recon, data, mean, log_variance)
        loss.backward()
        total += loss.item()
        optimizer.step()
        if batch % args.log_interval == 0:
            print(f"Train Epoch: {epoch} [{batch * len(data)}/{len(train_loader.dataset)} ({100.0 * batch / len(train_loader):.0f}%)]\t"
                  f"Loss: {loss.item() / len(data):.4f}")
    print(f"====> Epoch: {epoch} Average loss: {total / len(train_loader.dataset):.4f}")


def test(epoch):
    model.eval()
    total = 0
    with torch.no_grad():
        for data, _ in test_loader:
            recon, mean, log_variance = model(data)
            total += loss_function(recon, data, mean, log_variance).item()
    print(f"====> Test set loss: {total / len(test_loader.dataset):.4f}")


if __name__ == "__main__":
    for epoch in range(1, args.epochs + 1):
        train(epoch)
        test(epoch)
        with torch.no_grad():
            sample = model.decode(torch.randn(4, 10)).view(4, 1, 28, 28)
            print("sample", [round(value, 3) for value in sample.mean(dim=(1, 2, 3)).tolist()])

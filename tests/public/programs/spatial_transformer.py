"""A net that turns and moves its input by an affine grid of its own, after PyTorch's spatial transformer tutorial."""

import torch
import torch.nn as nn
import torch.nn.functional as F
import torch.optim as optim
from torch.utils.data import DataLoader

from synthetic import Digits


class CoordConv(nn.Conv2d):
    """A convolution that sees where it is."""

    def forward(self, x):
        n, _, h, w = x.shape
        rows = torch.linspace(-1, 1, h).view(1, 1, h, 1).expand(n, 1, h, w)
        columns = torch.linspace(-1, 1, w).view(1, 1, 1, w).expand(n, 1, h, w)
        return super().forward(torch.cat([x, rows, columns], dim=1))


class Net(nn.Module):
    def __init__(self):
        super(Net, self).__init__()
        self.conv1, self.conv2 = CoordConv(3, 8, kernel_size=5), nn.Conv2d(8, 12, kernel_size=5)
        self.conv2_drop = nn.Dropout2d(0.1)
        self.fc1, self.fc2 = nn.Linear(12 * 4 * 4, 32), nn.Linear(32, 10)
        self.localization = nn.Sequential(nn.Conv2d(1, 6, kernel_size=7), nn.MaxPool2d(2, stride=2), nn.ReLU(True),
                                          nn.Conv2d(6, 8, kernel_size=5), nn.MaxPool2d(2, stride=2), nn.ReLU(True))
        self.fc_loc = nn.Sequential(nn.Linear(8 * 3 * 3, 16), nn.ReLU(True), nn.Linear(16, 3 * 2))
        self.fc_loc[2].weight.data.zero_()
        self.fc_loc[2].bias.data.copy_(torch.tensor([1, 0, 0, 0, 1, 0], dtype=torch.float))

    def stn(self, x):
        xs = self.localization(x).view(-1, 8 * 3 * 3)
        theta = self.fc_loc(xs).view(-1, 2, 3)
        grid = F.affine_grid(theta, x.size(), align_corners=False)
        return F.grid_sample(x, grid, align_corners=False)

    def forward(self, x):
        x = self.stn(x)
        x = F.relu(F.max_pool2d(self.conv1(x), 2))
        x = F.relu(F.max_pool2d(self.conv2_drop(self.conv2(x)), 2))
        x = x.view(-1, 12 * 4 * 4)
        x = F.dropout(F.relu(self.fc1(x)), p=0.1, training=self.training)
        return F.log_softmax(self.fc2(x), dim=1)


torch.manual_seed(16)
model = Net()
train_loader = DataLoader(Digits(512, seed=1), batch_size=32, shuffle=True)
test_loader = DataLoader(Digits(128, seed=2), batch_size=64)
optimizer = optim.SGD(model.parameters(), lr=0.05, momentum=0.5)
for epoch in range(1, 5):
    model.train()
    for batch_idx, (data, target) in enumerate(train_loader):
        optimizer.zero_grad()
        output = model(data)
        loss = F.nll_loss(output, target)
        loss.backward()
        optimizer.step()
        if batch_idx % 5 == 0:
            print("Train Epoch: {} [{}/{} ({:.0f}%)]\tLoss: {:.6f}".format(
                epoch, batch_idx * len(data), len(train_loader.dataset), 100.0 * batch_idx / len(train_loader), loss.item()))
    with torch.no_grad():
        model.eval()
        test_loss, correct = 0, 0
        for data, target in test_loader:
            output = model(data)
            test_loss += F.nll_loss(output, target, reduction="sum").item()
            correct += output.max(1, keepdim=True)[1].eq(target.max() * 0 + target.view(-1, 1)).sum().item()
        print("\nTest set: Average loss: {:.4f}, Accuracy: {}/{}\n".format(test_loss / 128, correct, len(test_loader.dataset)))
        moved = model.stn(data[:4])
        print("moved by", [round(v, 4) for v in (moved - data[:4]).abs().mean(dim=(1, 2, 3)).tolist()])

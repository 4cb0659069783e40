"""Super resolution with a sub-pixel convolution, after pytorch/examples' super_resolution."""

import argparse
import os
import tempfile
from math import log10

import torch
import torch.nn as nn
import torch.nn.init as init
import torch.optim as optim
from torch.utils.data import DataLoader, Dataset

from synthetic import Digits

parser = argparse.ArgumentParser(description="Super Res")
parser.add_argument("--upscale_factor", type=int, default=2)
parser.add_argument("--batchSize", type=int, default=8)
parser.add_argument("--nEpochs", type=int, default=4)
parser.add_argument("--lr", type=float, default=0.003)
opt = parser.parse_args()
print(opt)
torch.manual_seed(123)


class Pairs(Dataset):
    def __init__(self, count, factor, seed):
        self.images = Digits(count, size=32, noise=0.02, seed=seed)
        self.factor = factor

    def __len__(self):
        return len(self.images)

    def __getitem__(self, index):
        target, _ = self.images[index]
        return nn.functional.avg_pool2d(target, self.factor), target


class Net(nn.Module):
    def __init__(self, upscale_factor):
        super(Net, self).__init__()
        self.relu = nn.ReLU()
        self.conv1 = nn.Conv2d(1, 16, (5, 5), (1, 1), (2, 2))
        self.conv2 = nn.Conv2d(16, 16, (3, 3), (1, 1), (1, 1))
        self.conv3 = nn.Conv2d(16, 8, (3, 3), (1, 1), (1, 1))
        self.conv4 = nn.Conv2d(8, upscale_factor ** 2, (3, 3), (1, 1), (1, 1))
        self.pixel_shuffle = nn.PixelShuffle(upscale_factor)
        self._initialize_weights()

    def forward(self, x):
        x = self.relu(self.conv1(x))
        x = self.relu(self.conv2(x))
        x = self.relu(self.conv3(x))
        return self.pixel_shuffle(self.conv4(x))

    def _initialize_weights(self):
        init.orthogonal_(self.conv1.weight, init.calculate_gain("relu"))
        init.orthogonal_(self.conv2.weight, init.calculate_gain("relu"))
        init.orthogonal_(self.conv3.weight, init.calculate_gain("relu"))
        init.orthogonal_(self.conv4.weight)


training_data_loader = DataLoader(Pairs(128, opt.upscale_factor, 1), batch_size=opt.batchSize, shuffle=True)
testing_data_loader = DataLoader(Pairs(32, opt.upscale_factor, 2), batch_size=8)
model = Net(upscale_factor=opt.upscale_factor)
criterion = nn.MSELoss()
optimizer = optim.Adam(model.parameters(), lr=opt.lr)


def train(epoch):
    epoch_loss = 0
    for iteration, batch in enumerate(training_data_loader, 1):
        input, target = batch[0], batch[1]
        optimizer.zero_grad()
        loss = criterion(model(input), target)
        epoch_loss += loss.item()
        loss.backward()
        optimizer.step()
        if iteration % 4 == 0:
            print("===> Epoch[{}]({}/{}): Loss: {:.4f}".format(epoch, iteration, len(training_data_loader), loss.item()))
    print("===> Epoch {} Complete: Avg. Loss: {:.4f}".format(epoch, epoch_loss / len(training_data_loader)))


def test():
    avg_psnr = 0
    with torch.no_grad():
        for batch in testing_data_loader:
            mse = criterion(model(batch[0]), batch[1])
            avg_psnr += 10 * log10(1 / mse.item())
    print("===> Avg. PSNR: {:.4f} dB".format(avg_psnr / len(testing_data_loader)))


with tempfile.TemporaryDirectory() as folder:
    for epoch in range(1, opt.nEpochs + 1):
        train(epoch)
        test()
        torch.save(model, os.path.join(folder, "model_epoch_{}.pth".format(epoch)))
    model = torch.load(os.path.join(folder, "model_epoch_1.pth"), weights_only=False)
    test()

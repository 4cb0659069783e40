"""Segmentation by a U-Net with dice loss, weighted decay, validation between, checkpoints, after Pytorch-UNet."""

import os
import tempfile

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch import optim
from torch.utils.data import DataLoader, random_split

from synthetic import Shapes


class DoubleConv(nn.Module):
    def __init__(self, in_channels, out_channels, mid_channels=None):
        super().__init__()
        if not mid_channels:
            mid_channels = out_channels
        self.double_conv = nn.Sequential(nn.Conv2d(in_channels, mid_channels, kernel_size=3, padding=1, bias=False), nn.BatchNorm2d(mid_channels), nn.ReLU(inplace=True),
                                         nn.Conv2d(mid_channels, out_channels, kernel_size=3, padding=1, bias=False), nn.BatchNorm2d(out_channels), nn.ReLU(inplace=True))

    def forward(self, x):
        return self.double_conv(x)


class Down(nn.Module):
    def __init__(self, in_channels, out_channels):
        super().__init__()
        self.maxpool_conv = nn.Sequential(nn.MaxPool2d(2), DoubleConv(in_channels, out_channels))

    def forward(self, x):
        return self.maxpool_conv(x)


class Up(nn.Module):
    def __init__(self, in_channels, out_channels, bilinear=True):
        super().__init__()
        if bilinear:
            self.up = nn.Upsample(scale_factor=2, mode="bilinear", align_corners=True)
            self.conv = DoubleConv(in_channels, out_channels, in_channels // 2)
        else:
            self.up = nn.ConvTranspose2d(in_channels, in_channels // 2, kernel_size=2, stride=2)
            self.conv = DoubleConv(in_channels, out_channels)

    def forward(self, x1, x2):
        x1 = self.up(x1)
        diff_y, diff_x = x2.size()[2] - x1.size()[2], x2.size()[3] - x1.size()[3]
        x1 = F.pad(x1, [diff_x // 2, diff_x - diff_x // 2, diff_y // 2, diff_y - diff_y // 2])
        return self.conv(torch.cat([x2, x1], dim=1))


class UNet(nn.Module):
    def __init__(self, n_channels, n_classes, bilinear=False):
        super().__init__()
        factor = 2 if bilinear else 1
        self.inc = DoubleConv(n_channels, 8)
        self.down1, self.down2 = Down(8, 16), Down(16, 32 // factor)
        self.up1, self.up2 = Up(32, 16 // factor, bilinear), Up(16, 8, bilinear)
        self.outc = nn.Conv2d(8, n_classes, kernel_size=1)

    def forward(self, x):
        x1 = self.inc(x)
        x2 = self.down1(x1)
        x3 = self.down2(x2)
        return self.outc(self.up2(self.up1(x3, x2), x1))


def dice_coeff(input, target, epsilon=1e-6):
    inter = 2 * (input * target).sum(dim=(-1, -2))
    sets_sum = input.sum(dim=(-1, -2)) + target.sum(dim=(-1, -2))
    sets_sum = torch.where(sets_sum == 0, inter, sets_sum)
    return ((inter + epsilon) / (sets_sum + epsilon)).mean()


@torch.inference_mode()
def evaluate(net, dataloader):
    net.eval()
    num_val_batches, dice_score = len(dataloader), 0
    for image, mask_true, _ in dataloader:
        mask_pred = (torch.sigmoid(net(image).squeeze(1)) > 0.5).float()
        dice_score += dice_coeff(mask_pred, mask_true.squeeze(1))
    net.train()
    return dice_score / max(num_val_batches, 1)


def train_model(model, epochs=3, batch_size=8, learning_rate=3e-3, val_percent=0.2, gradient_clipping=1.0):
    dataset = Shapes(100, size=24, seed=3)
    n_val = int(len(dataset) * val_percent)
    train_set, val_set = random_split(dataset, [len(dataset) - n_val, n_val], generator=torch.Generator().manual_seed(0))
    train_loader = DataLoader(train_set, shuffle=True, batch_size=batch_size)
    val_loader = DataLoader(val_set, shuffle=False, drop_last=True, batch_size=batch_size)
    optimizer = optim.RMSprop(model.parameters(), lr=learning_rate, weight_decay=1e-8, momentum=0.9, foreach=True)
    scheduler = optim.lr_scheduler.ReduceLROnPlateau(optimizer, "max", patience=1)
    criterion, global_step = nn.BCEWithLogitsLoss(), 0
    with tempfile.TemporaryDirectory() as folder:
        for epoch in range(1, epochs + 1):
            model.train()
            epoch_loss = 0
            for images, true_masks, _ in train_loader:
                images = images.to(dtype=torch.float32, memory_format=torch.channels_last)
                masks_pred = model(images)
                loss = criterion(masks_pred, true_masks)
                loss += 1 - dice_coeff(torch.sigmoid(masks_pred.squeeze(1)), true_masks.squeeze(1))
                optimizer.zero_grad(set_to_none=True)
                loss.backward()
                torch.nn.utils.clip_grad_norm_(model.parameters(), gradient_clipping)
                optimizer.step()
                global_step += 1
                epoch_loss += loss.item()
                if global_step % 5 == 0:
                    val_score = evaluate(model, val_loader)
                    scheduler.step(val_score)
                    print(f"step {global_step}: loss {loss.item():.4f} dice {val_score:.4f} lr {optimizer.param_groups[0]['lr']:.6f}")
            print(f"epoch {epoch}: {epoch_loss / len(train_loader):.4f}")
            torch.save(model.state_dict(), os.path.join(folder, f"checkpoint_epoch{epoch}.pth"))
        model.load_state_dict(torch.load(os.path.join(folder, "checkpoint_epoch1.pth"), weights_only=True))
        print(f"after the first epoch it was {evaluate(model, val_loader):.4f}")


if __name__ == "__main__":
    for bilinear in (False, True):
        torch.manual_seed(0)
        model = UNet(n_channels=3, n_classes=1, bilinear=bilinear).to(memory_format=torch.channels_last)
        train_model(model)

"""A network that paints images in a style, learned against the features of a fixed net, after pytorch/examples' fast_neural_style."""

import argparse
import collections

import torch
import torch.nn as nn
from torch.optim import Adam
from torch.utils.data import DataLoader

from synthetic import Shapes


class ConvLayer(nn.Module):
    def __init__(self, in_channels, out_channels, kernel_size, stride):
        super().__init__()
        self.reflection_pad = nn.ReflectionPad2d(kernel_size // 2)
        self.conv2d = nn.Conv2d(in_channels, out_channels, kernel_size, stride)

    def forward(self, x):
        return self.conv2d(self.reflection_pad(x))


class ResidualBlock(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.conv1 = ConvLayer(channels, channels, kernel_size=3, stride=1)
        self.in1 = nn.InstanceNorm2d(channels, affine=True)
        self.conv2 = ConvLayer(channels, channels, kernel_size=3, stride=1)
        self.in2 = nn.InstanceNorm2d(channels, affine=True)
        self.relu = nn.ReLU()

    def forward(self, x):
        out = self.relu(self.in1(self.conv1(x)))
        return self.in2(self.conv2(out)) + x


class UpsampleConvLayer(nn.Module):
    def __init__(self, in_channels, out_channels, kernel_size, stride, upsample=None):
        super().__init__()
        self.upsample = upsample
        self.reflection_pad = nn.ReflectionPad2d(kernel_size // 2)
        self.conv2d = nn.Conv2d(in_channels, out_channels, kernel_size, stride)

    def forward(self, x):
        if self.upsample:
            x = nn.functional.interpolate(x, mode="nearest", scale_factor=self.upsample)
        return self.conv2d(self.reflection_pad(x))


class TransformerNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1, self.in1 = ConvLayer(3, 8, kernel_size=5, stride=1), nn.InstanceNorm2d(8, affine=True)
        self.conv2, self.in2 = ConvLayer(8, 16, kernel_size=3, stride=2), nn.InstanceNorm2d(16, affine=True)
        self.res1, self.res2 = ResidualBlock(16), ResidualBlock(16)
        self.deconv1, self.in3 = UpsampleConvLayer(16, 8, kernel_size=3, stride=1, upsample=2), nn.InstanceNorm2d(8, affine=True)
        self.deconv2 = ConvLayer(8, 3, kernel_size=5, stride=1)
        self.relu = nn.ReLU()

    def forward(self, x):
        y = self.relu(self.in1(self.conv1(x)))
        y = self.relu(self.in2(self.conv2(y)))
        y = self.res2(self.res1(y))
        y = self.relu(self.in3(self.deconv1(y)))
        return self.deconv2(y)


class Features(nn.Module):
    """A net like VGG's beginning, with weights that stay as they are drawn."""

    def __init__(self):
        super().__init__()
        layers = []
        for inputs, outputs in ((3, 8), (8, 8), (8, 16), (16, 16)):
            layers += [nn.Conv2d(inputs, outputs, 3, padding=1), nn.ReLU(inplace=True)]
        layers.insert(4, nn.MaxPool2d(2))
        features = nn.Sequential(*layers)
        self.slice1, self.slice2, self.slice3 = features[:2], features[2:7], features[7:]
        for param in self.parameters():
            param.requires_grad = False

    def forward(self, X):
        h = h_relu1 = self.slice1(X)
        h = h_relu2 = self.slice2(h)
        h_relu3 = self.slice3(h)
        return collections.namedtuple("Outputs", ["relu1", "relu2", "relu3"])(h_relu1, h_relu2, h_relu3)


def gram_matrix(y):
    b, ch, h, w = y.size()
    features = y.view(b, ch, w * h)
    return features.bmm(features.transpose(1, 2)) / (ch * h * w)


def normalize_batch(batch):
    mean = batch.new_tensor([0.485, 0.456, 0.406]).view(-1, 1, 1)
    std = batch.new_tensor([0.229, 0.224, 0.225]).view(-1, 1, 1)
    return (batch - mean) / std


def train(args):
    torch.manual_seed(args.seed)
    train_loader = DataLoader(Shapes(160, 32, seed=1), batch_size=args.batch_size)
    transformer = TransformerNet()
    optimizer = Adam(transformer.parameters(), args.lr)
    mse_loss = nn.MSELoss()
    vgg = Features()
    rows = torch.arange(32.0)
    style = torch.stack([torch.sin(rows[:, None] / 2 + rows), torch.cos(rows[:, None] / 3 - rows), torch.sin(rows[:, None] * rows / 20)]) / 2 + 0.5
    style = style.repeat(args.batch_size, 1, 1, 1)
    gram_style = [gram_matrix(y) for y in vgg(normalize_batch(style))]
    for e in range(args.epochs):
        transformer.train()
        agg_content_loss = agg_style_loss = 0.0
        count = 0
        for batch_id, (x, _, _) in enumerate(train_loader):
            n_batch = len(x)
            count += n_batch
            optimizer.zero_grad()
            y = transformer(x)
            y = normalize_batch(y)
            x = normalize_batch(x)
            features_y, features_x = vgg(y), vgg(x)
            content_loss = args.content_weight * mse_loss(features_y.relu2, features_x.relu2)
            style_loss = 0.0
            for ft_y, gm_s in zip(features_y, gram_style):
                style_loss += mse_loss(gram_matrix(ft_y), gm_s[:n_batch, :, :])
            style_loss *= args.style_weight
            total_loss = content_loss + style_loss
            total_loss.backward()
            optimizer.step()
            agg_content_loss += content_loss.item()
            agg_style_loss += style_loss.item()
            if (batch_id + 1) % args.log_interval == 0:
                print("Epoch {}:\t[{}/{}]\tcontent: {:.4f}\tstyle: {:.4f}\ttotal: {:.4f}".format(
                    e + 1, count, len(train_loader.dataset), agg_content_loss / (batch_id + 1), agg_style_loss / (batch_id + 1),
                    (agg_content_loss + agg_style_loss) / (batch_id + 1)))
    transformer.eval()
    with torch.no_grad():
        output = transformer(x[:1])
    print("painted", [round(v, 3) for v in output.mean(dim=(0, 2, 3)).tolist()])


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="fast neural style")
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--batch-size", type=int, default=4)
    parser.add_argument("--seed", type=int, default=42)
    parser.add_argument("--content-weight", type=float, default=10.0)
    parser.add_argument("--style-weight", type=float, default=100.0)
    parser.add_argument("--lr", type=float, default=1e-3)
    parser.add_argument("--log-interval", type=int, default=10)
    train(parser.parse_args())

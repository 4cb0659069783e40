"""An InfoGAN: a GAN whose codes for class and style are found again by the discriminator, after PyTorch-GAN's infogan."""

import itertools

import numpy as np
import torch
import torch.nn as nn
from torch.utils.data import DataLoader

from synthetic import Digits

LATENT, CLASSES, CODES, SIZE = 12, 10, 2, 16
torch.manual_seed(11)
np.random.seed(11)


def to_categorical(y, num_columns):
    y_cat = np.zeros((y.shape[0], num_columns))
    y_cat[range(y.shape[0]), y] = 1.0
    return torch.FloatTensor(y_cat)


class Generator(nn.Module):
    def __init__(self):
        super().__init__()
        self.init_size = SIZE // 4
        self.l1 = nn.Sequential(nn.Linear(LATENT + CLASSES + CODES, 16 * self.init_size ** 2))
        self.conv_blocks = nn.Sequential(
            nn.BatchNorm2d(16), nn.Upsample(scale_factor=2), nn.Conv2d(16, 16, 3, stride=1, padding=1), nn.BatchNorm2d(16, 0.8),
            nn.LeakyReLU(0.2, inplace=True), nn.Upsample(scale_factor=2), nn.Conv2d(16, 8, 3, stride=1, padding=1), nn.BatchNorm2d(8, 0.8),
            nn.LeakyReLU(0.2, inplace=True), nn.Conv2d(8, 1, 3, stride=1, padding=1), nn.Tanh())

    def forward(self, noise, labels, code):
        out = self.l1(torch.cat((noise, labels, code), -1))
        out = out.view(out.shape[0], 16, self.init_size, self.init_size)
        return self.conv_blocks(out)


class Discriminator(nn.Module):
    def __init__(self):
        super().__init__()

        def block(in_filters, out_filters, bn=True):
            layers = [nn.Conv2d(in_filters, out_filters, 3, 2, 1), nn.LeakyReLU(0.2, inplace=True), nn.Dropout2d(0.25)]
            if bn:
                layers.append(nn.BatchNorm2d(out_filters, 0.8))
            return layers

        self.conv_blocks = nn.Sequential(*block(1, 8, bn=False), *block(8, 16), *block(16, 16))
        size = 16 * (SIZE // 8) ** 2
        self.adv_layer = nn.Sequential(nn.Linear(size, 1))
        self.aux_layer = nn.Sequential(nn.Linear(size, CLASSES), nn.Softmax(dim=1))
        self.latent_layer = nn.Sequential(nn.Linear(size, CODES))

    def forward(self, img):
        out = self.conv_blocks(img).view(img.shape[0], -1)
        return self.adv_layer(out), self.aux_layer(out), self.latent_layer(out)


adversarial_loss, categorical_loss, continuous_loss = nn.MSELoss(), nn.CrossEntropyLoss(), nn.MSELoss()
lambda_cat, lambda_con = 1, 0.1
generator, discriminator = Generator(), Discriminator()
dataloader = DataLoader(Digits(320, size=SIZE, seed=6), batch_size=16, shuffle=True)
optimizer_G = torch.optim.Adam(generator.parameters(), lr=2e-4, betas=(0.5, 0.999))
optimizer_D = torch.optim.Adam(discriminator.parameters(), lr=2e-4, betas=(0.5, 0.999))
optimizer_info = torch.optim.Adam(itertools.chain(generator.parameters(), discriminator.parameters()), lr=2e-4, betas=(0.5, 0.999))
static_z = torch.zeros((CLASSES ** 2, LATENT))
static_label = to_categorical(np.array([num for _ in range(CLASSES) for num in range(CLASSES)]), num_columns=CLASSES)
static_code = torch.zeros((CLASSES ** 2, CODES))

for epoch in range(4):
    for i, (imgs, labels) in enumerate(dataloader):
        batch_size = imgs.shape[0]
        valid = torch.ones(batch_size, 1)
        fake = torch.zeros(batch_size, 1)
        real_imgs = imgs * 2 - 1
        labels = to_categorical(labels.numpy(), num_columns=CLASSES)

        optimizer_G.zero_grad()
        z = torch.FloatTensor(np.random.normal(0, 1, (batch_size, LATENT)))
        label_input = to_categorical(np.random.randint(0, CLASSES, batch_size), num_columns=CLASSES)
        code_input = torch.FloatTensor(np.random.uniform(-1, 1, (batch_size, CODES)))
        gen_imgs = generator(z, label_input, code_input)
        validity, _, _ = discriminator(gen_imgs)
        g_loss = adversarial_loss(validity, valid)
        g_loss.backward()
        optimizer_G.step()

        optimizer_D.zero_grad()
        real_pred, _, _ = discriminator(real_imgs)
        d_real_loss = adversarial_loss(real_pred, valid)
        fake_pred, _, _ = discriminator(gen_imgs.detach())
        d_fake_loss = adversarial_loss(fake_pred, fake)
        d_loss = (d_real_loss + d_fake_loss) / 2
        d_loss.backward()
        optimizer_D.step()

        optimizer_info.zero_grad()
        sampled_labels = np.random.randint(0, CLASSES, batch_size)
        gt_labels = torch.LongTensor(sampled_labels)
        z = torch.FloatTensor(np.random.normal(0, 1, (batch_size, LATENT)))
        label_input = to_categorical(sampled_labels, num_columns=CLASSES)
        code_input = torch.FloatTensor(np.random.uniform(-1, 1, (batch_size, CODES)))
        gen_imgs = generator(z, label_input, code_input)
        _, pred_label, pred_code = discriminator(gen_imgs)
        info_loss = lambda_cat * categorical_loss(pred_label, gt_labels) + lambda_con * continuous_loss(pred_code, code_input)
        info_loss.backward()
        optimizer_info.step()
        if i % 5 == 4:
            print("[Epoch %d/%d] [Batch %d/%d] [D loss: %.4f] [G loss: %.4f] [info loss: %.4f]"
                  % (epoch, 4, i, len(dataloader), d_loss.item(), g_loss.item(), info_loss.item()))
    with torch.no_grad():
        static = generator(static_z, static_label, static_code)
        varied = generator(static_z, static_label, torch.FloatTensor(np.repeat(np.linspace(-1, 1, CLASSES)[:, np.newaxis], CLASSES, 0).repeat(2, 1)))
    print("static", round(static.mean().item(), 4), "varied", round(varied.std().item(), 4))

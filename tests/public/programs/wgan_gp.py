"""A Wasserstein GAN with gradient penalty, after PyTorch-GAN's wgan_gp."""

import argparse

import numpy as np
import torch
import torch.autograd as autograd
import torch.nn as nn
from torch.utils.data import DataLoader

from synthetic import Digits

parser = argparse.ArgumentParser()
parser.add_argument("--n_epochs", type=int, default=8)
parser.add_argument("--batch_size", type=int, default=32)
parser.add_argument("--latent_dim", type=int, default=16)
parser.add_argument("--img_size", type=int, default=14)
parser.add_argument("--n_critic", type=int, default=5)
opt = parser.parse_args()
torch.manual_seed(0)
np.random.seed(0)
img_shape = (1, opt.img_size, opt.img_size)


class Generator(nn.Module):
    def __init__(self):
        super().__init__()

        def block(in_feat, out_feat, normalize=True):
            layers = [nn.Linear(in_feat, out_feat)]
            if normalize:
                layers.append(nn.BatchNorm1d(out_feat, 0.8))
            layers.append(nn.LeakyReLU(0.2, inplace=True))
            return layers

        self.model = nn.Sequential(*block(opt.latent_dim, 32, normalize=False), *block(32, 64), *block(64, 128),
                                   nn.Linear(128, int(np.prod(img_shape))), nn.Tanh())

    def forward(self, z):
        img = self.model(z)
        return img.view(img.shape[0], *img_shape)


class Discriminator(nn.Module):
    def __init__(self):
        super().__init__()
        self.model = nn.Sequential(nn.Linear(int(np.prod(img_shape)), 128), nn.LeakyReLU(0.2, inplace=True),
                                   nn.Linear(128, 64), nn.LeakyReLU(0.2, inplace=True), nn.Linear(64, 1))

    def forward(self, img):
        return self.model(img.view(img.shape[0], -1))


lambda_gp = 10
generator, discriminator = Generator(), Discriminator()
dataloader = DataLoader(Digits(512, size=opt.img_size, seed=5), batch_size=opt.batch_size, shuffle=True)
optimizer_G = torch.optim.Adam(generator.parameters(), lr=0.0002, betas=(0.5, 0.999))
optimizer_D = torch.optim.Adam(discriminator.parameters(), lr=0.0002, betas=(0.5, 0.999))


def compute_gradient_penalty(D, real_samples, fake_samples):
    alpha = torch.tensor(np.random.random((real_samples.size(0), 1, 1, 1)), dtype=torch.float32)
    interpolates = (alpha * real_samples + (1 - alpha) * fake_samples).requires_grad_(True)
    d_interpolates = D(interpolates)
    gradients = autograd.grad(outputs=d_interpolates, inputs=interpolates, grad_outputs=torch.ones_like(d_interpolates),
                              create_graph=True, retain_graph=True, only_inputs=True)[0]
    gradients = gradients.view(gradients.size(0), -1)
    return ((gradients.norm(2, dim=1) - 1) ** 2).mean()


batches_done = 0
for epoch in range(opt.n_epochs):
    for i, (imgs, _) in enumerate(dataloader):
        real_imgs = 2 * imgs - 1
        optimizer_D.zero_grad()
        z = torch.tensor(np.random.normal(0, 1, (imgs.shape[0], opt.latent_dim)), dtype=torch.float32)
        fake_imgs = generator(z)
        real_validity = discriminator(real_imgs)
        fake_validity = discriminator(fake_imgs.detach())
        gradient_penalty = compute_gradient_penalty(discriminator, real_imgs.data, fake_imgs.data)
        d_loss = -torch.mean(real_validity) + torch.mean(fake_validity) + lambda_gp * gradient_penalty
        d_loss.backward()
        optimizer_D.step()

        optimizer_G.zero_grad()
        if i % opt.n_critic == 0:
            fake_imgs = generator(z)
            fake_validity = discriminator(fake_imgs)
            g_loss = -torch.mean(fake_validity)
            g_loss.backward()
            optimizer_G.step()
            print("[Epoch %d/%d] [Batch %d/%d] [D loss: %.4f] [G loss: %.4f] [penalty: %.4f]"
                  % (epoch, opt.n_epochs, i, len(dataloader), d_loss.item(), g_loss.item(), gradient_penalty.item()))
            batches_done += opt.n_critic
print("batches", batches_done, "sample", [round(v, 4) for v in fake_imgs[0, 0, 5, :5].tolist()])

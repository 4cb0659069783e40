# A generator and a discriminator trained in turns, with detach, two optimizers and labels that are smoothed.
# expect: compiled>=0.75, traces>=1
import torch
from torch import nn

torch.manual_seed(152)
generator = nn.Sequential(nn.Linear(2, 8), nn.ReLU(), nn.Linear(8, 2))
discriminator = nn.Sequential(nn.Linear(2, 8), nn.LeakyReLU(0.2), nn.Linear(8, 1))
optimizer_g = torch.optim.Adam(generator.parameters(), lr=0.01, betas=(0.5, 0.999))
optimizer_d = torch.optim.Adam(discriminator.parameters(), lr=0.01, betas=(0.5, 0.999))
criterion = nn.BCEWithLogitsLoss()
real_label, fake_label = torch.full((10, 1), 0.9), torch.zeros(10, 1)
losses = []
for step in range(60):
    real = torch.randn(10, 2) * 0.3 + torch.tensor([1.0, -1.0])
    fake = generator(torch.randn(10, 2))
    optimizer_d.zero_grad()
    loss_d = criterion(discriminator(real), real_label) + criterion(discriminator(fake.detach()), fake_label)
    loss_d.backward()
    optimizer_d.step()
    optimizer_g.zero_grad()
    loss_g = criterion(discriminator(fake), torch.ones(10, 1))
    loss_g.backward()
    optimizer_g.step()
    losses.append((loss_d.item(), loss_g.item()))
print([f"{d:.4f} {g:.4f}" for d, g in losses[::12]], f"{fake.mean().item():.4f}")

# Two models with two optimizers in one loop, one trained through the other (as in a GAN).
# expect: compiled>=0.06
import torch
from torch import nn

torch.manual_seed(0)
gen = nn.Sequential(nn.Linear(3, 8), nn.ReLU(), nn.Linear(8, 4))
dis = nn.Sequential(nn.Linear(4, 8), nn.LeakyReLU(0.2), nn.Linear(8, 1))
og = torch.optim.Adam(gen.parameters(), lr=0.002, betas=(0.5, 0.99))
od = torch.optim.Adam(dis.parameters(), lr=0.002, betas=(0.5, 0.99))
bce = nn.BCEWithLogitsLoss()
real = torch.randn(8, 4) + 1
one, zero = torch.ones(8, 1), torch.zeros(8, 1)
for i in range(40):
    fake = gen(torch.randn(8, 3))
    od.zero_grad()
    ld = bce(dis(real), one) + bce(dis(fake.detach()), zero)
    ld.backward()
    od.step()
    og.zero_grad()
    lg = bce(dis(fake), one)
    lg.backward()
    og.step()
    if i % 8 == 0:
        print(i, f"{ld.item():.5f} {lg.item():.5f}")

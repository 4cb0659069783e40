# A part of the graph is used by the second backward() alone; the tensor that both start from is read after the loop.
# expect: compiled>=0.7, traces>=1
import torch
from torch import nn
torch.manual_seed(152)
generator = nn.Linear(2, 2)
discriminator = nn.Linear(2, 1)
og = torch.optim.SGD(generator.parameters(), lr=0.1)
for step in range(20):
    fake = generator(torch.ones(10, 2)*0.1)
    loss_d = discriminator(fake.detach()).sigmoid().mean()
    loss_d.backward()
    og.zero_grad()
    loss = discriminator(fake).sigmoid().mean()
    loss.backward()
    og.step()
print(f"{fake.mean().item():.4f}", f"{generator(torch.ones(10,2)*0.1).mean().item():.4f}",)

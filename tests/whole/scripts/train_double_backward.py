# A gradient penalty: the gradient with respect to inputs is part of the loss, so backward goes through backward.
# expect: compiled>=0.35, traces>=1
import torch
from torch import nn

torch.manual_seed(149)
critic = nn.Sequential(nn.Linear(3, 8), nn.Softplus(), nn.Linear(8, 1))
optimizer = torch.optim.Adam(critic.parameters(), lr=0.02)
penalties = []
for step in range(40):
    real, fake = torch.randn(6, 3) + 1, torch.randn(6, 3)
    share = torch.rand(6, 1)
    mixed = (share * real + (1 - share) * fake).requires_grad_()
    (gradient,) = torch.autograd.grad(critic(mixed).sum(), mixed, create_graph=True)
    penalty = (gradient.norm(dim=1) - 1).pow(2).mean()
    loss = critic(fake).mean() - critic(real).mean() + 10 * penalty
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    penalties.append(penalty.item())
print([f"{p:.4f}" for p in penalties[::8]], f"{loss.item():.4f}")

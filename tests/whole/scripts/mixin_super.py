# Cooperative super() through mixins in method resolution order: each adds to forward and to the loss.
# expect: compiled>=0.85, traces>=1
import torch
from torch import nn


class Base(nn.Module):
    def __init__(self, width, **kwargs):
        super().__init__()
        self.layer = nn.Linear(width, width)

    def forward(self, x):
        return self.layer(x)

    def penalty(self):
        return 0.0


class ResidualMixin:
    def forward(self, x):
        return x + super().forward(x)


class NoiseMixin:
    def __init__(self, *args, noise=0.1, **kwargs):
        super().__init__(*args, **kwargs)
        self.noise = noise

    def forward(self, x):
        if self.training:
            x = x + self.noise * torch.randn_like(x)
        return super().forward(x)


class DecayMixin:
    def penalty(self):
        return super().penalty() + 0.01 * sum(p.pow(2).sum() for p in self.parameters())


class Model(DecayMixin, NoiseMixin, ResidualMixin, Base):
    def forward(self, x):
        return torch.tanh(super().forward(x))


torch.manual_seed(59)
model = Model(4, noise=0.05)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
x = torch.randn(6, 4)
for step in range(60):
    optimizer.zero_grad()
    loss = (model(x) - x.flip(1)).pow(2).mean() + model.penalty()
    loss.backward()
    optimizer.step()
print([c.__name__ for c in Model.__mro__[:5]], f"{loss.item():.5f}")

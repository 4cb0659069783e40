"""A RealNVP on two moons: masked couplings, exact likelihood, inverse, sampling, after common normalizing-flow code."""

import math

import torch
import torch.nn as nn
from torch.distributions import MultivariateNormal


def moons(count, generator, noise=0.06):
    angle = math.pi * torch.rand(count, generator=generator)
    upper = torch.rand(count, generator=generator) < 0.5
    x = torch.where(upper, angle.cos(), 1 - angle.cos())
    y = torch.where(upper, angle.sin(), 0.5 - angle.sin())
    return torch.stack([x, y], dim=1) + noise * torch.randn(count, 2, generator=generator)


class Coupling(nn.Module):
    def __init__(self, mask, hidden):
        super().__init__()
        self.register_buffer("mask", mask)
        self.scale = nn.Sequential(nn.Linear(2, hidden), nn.LeakyReLU(), nn.Linear(hidden, hidden), nn.LeakyReLU(), nn.Linear(hidden, 2), nn.Tanh())
        self.shift = nn.Sequential(nn.Linear(2, hidden), nn.LeakyReLU(), nn.Linear(hidden, hidden), nn.LeakyReLU(), nn.Linear(hidden, 2))

    def forward(self, z):
        kept = z * self.mask
        s, t = self.scale(kept) * (1 - self.mask), self.shift(kept) * (1 - self.mask)
        return kept + (1 - self.mask) * (z * torch.exp(s) + t)

    def inverse(self, x):
        kept = x * self.mask
        s, t = self.scale(kept) * (1 - self.mask), self.shift(kept) * (1 - self.mask)
        return kept + (1 - self.mask) * (x - t) * torch.exp(-s), -s.sum(dim=1)


class ActNorm(nn.Module):
    """Scale and shift that the first batch sets."""

    def __init__(self):
        super().__init__()
        self.log_scale, self.bias = nn.Parameter(torch.zeros(2)), nn.Parameter(torch.zeros(2))
        self.register_buffer("initialized", torch.tensor(False))

    def forward(self, z):
        return z * torch.exp(self.log_scale) + self.bias

    def inverse(self, x):
        if not self.initialized:
            with torch.no_grad():
                self.bias.copy_(x.mean(0))
                self.log_scale.copy_(x.std(0).log())
                self.initialized.fill_(True)
        return (x - self.bias) * torch.exp(-self.log_scale), -self.log_scale.sum().expand(len(x))


class RealNVP(nn.Module):
    def __init__(self, layers, hidden, prior):
        super().__init__()
        self.prior = prior
        masks = [torch.tensor([0.0, 1.0]), torch.tensor([1.0, 0.0])]
        self.flows = nn.ModuleList()
        for k in range(layers):
            self.flows.extend([ActNorm(), Coupling(masks[k % 2], hidden)])

    def log_prob(self, x):
        log_det = x.new_zeros(x.shape[0])
        for flow in reversed(self.flows):
            x, change = flow.inverse(x)
            log_det = log_det + change
        return self.prior.log_prob(x) + log_det, x

    def sample(self, count):
        z = self.prior.sample((count,))
        for flow in self.flows:
            z = flow(z)
        return z


def main():
    torch.manual_seed(18)
    generator = torch.Generator().manual_seed(5)
    model = RealNVP(4, 24, MultivariateNormal(torch.zeros(2), torch.eye(2)))
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 40, gamma=0.5)
    for t in range(120):
        loss = -model.log_prob(moons(128, generator))[0].mean()
        optimizer.zero_grad()
        loss.backward(retain_graph=True)
        torch.nn.utils.clip_grad_norm_(model.parameters(), 5.0)
        optimizer.step()
        scheduler.step()
        if t % 15 == 0:
            print("iter %s:" % t, "loss = %.4f" % loss.item())
    with torch.no_grad():
        x = moons(64, generator)
        log_prob, z = model.log_prob(x)
        back = z
        for flow in model.flows:
            back = flow(back)
        samples = model.sample(200)
    print("inverse holds:", torch.allclose(back, x, atol=1e-3), "mean of z", [round(v, 2) for v in z.mean(0).tolist()],
          "spread of samples", [round(v, 2) for v in samples.std(0).tolist()], f"log likelihood {log_prob.mean():.3f}")


if __name__ == "__main__":
    main()

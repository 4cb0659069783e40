# torch.distributions: sampling, densities, entropies, divergences and what is trained with them.
from torch import distributions as D

encoder = nn.Sequential(nn.Linear(6, 12), nn.Tanh(), nn.Linear(12, 4))
opt = torch.optim.SGD(encoder.parameters(), lr=0.01)
inputs = torch.randn(STEPS, 5, 6)

# %% normal_log_likelihood
class Gaussian(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = encoder

    def forward(self, x):
        mean, raw = self.net(x).chunk(2, dim=-1)
        return D.Normal(mean, F.softplus(raw) + 0.1)


net = Gaussian()
for epoch in range(EPOCHS):
    for x in inputs:
        dist = net(x)
        loss = -dist.log_prob(x[:, :2]).sum(-1).mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
    mark()
print(loss.item(), dist.entropy().sum().item(), dist)

# %% categorical_policy
counts = torch.zeros(4, dtype=torch.long)
for epoch in range(EPOCHS):
    for x in inputs:
        policy = D.Categorical(logits=encoder(x))
        action = policy.sample()
        reward = (action == 1).float() - 0.25
        loss = -(policy.log_prob(action) * reward).mean() - 0.01 * policy.entropy().mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
        counts += torch.bincount(action, minlength=4)
    mark()
print(counts.tolist(), policy.probs[:, 1].mean().item())

# %% bernoulli_and_binomial
total = 0.0
for epoch in range(EPOCHS):
    for x in inputs:
        with torch.no_grad():
            logits = encoder(x)
            coin = D.Bernoulli(logits=logits)
            flips = coin.sample((3,))
            count = D.Binomial(5, probs=coin.mean).log_prob(flips.sum(0))
            total += coin.log_prob(flips).mean().item() + count.mean().item()
    mark()
print(total / (EPOCHS * STEPS), coin.variance.sum().item(), flips.shape)

# %% kl_divergences
prior = D.Normal(torch.zeros(2), torch.ones(2))
for epoch in range(EPOCHS):
    for x in inputs:
        mean, log_std = encoder(x).split(2, dim=1)
        q = D.Independent(D.Normal(mean, log_std.exp()), 1)
        kl = D.kl_divergence(q.base_dist, prior).sum(1)
        other = D.kl_divergence(D.Categorical(logits=mean), D.Categorical(probs=torch.ones(2) / 2))
        loss = (kl + other).mean() + 0.1 * (mean - 1).pow(2).mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
    mark()
print(kl.sum().item(), other.sum().item(), q.event_shape, q.batch_shape)

# %% reparameterized_samples
for epoch in range(EPOCHS):
    for i, x in enumerate(inputs):
        mean, raw = encoder(x).chunk(2, dim=1)
        q = D.Normal(mean, F.softplus(raw) + 0.01)
        z = q.rsample()
        with torch.no_grad():
            fixed = q.sample([2])
        gap = q.log_prob(z) - q.log_prob(fixed).mean(0)
        loss = (z - x[:, :2]).pow(2).mean() + 0.01 * gap.mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
    mark()
print(loss.item(), z.requires_grad, fixed.requires_grad)

# %% multivariate_normal
scale = nn.Parameter(torch.eye(3))
mean = nn.Parameter(torch.zeros(3))
opt = torch.optim.SGD([scale, mean], lr=0.01)
data = torch.randn(60, 3) @ torch.tensor([[1.0, 0.5, 0.0], [0.0, 1.0, 0.3], [0.0, 0.0, 0.7]])
for epoch in range(EPOCHS):
    for i in range(STEPS):
        lower = torch.tril(scale, -1) + torch.diag(scale.diagonal().abs() + 0.05)
        dist = D.MultivariateNormal(mean, scale_tril=lower)
        loss = -dist.log_prob(data[i:i + 10]).mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
    mark()
print(loss.item(), dist.covariance_matrix.tolist()[1])

# %% beta_gamma_dirichlet
a, b = nn.Parameter(torch.tensor(1.0)), nn.Parameter(torch.tensor(1.0))
opt = torch.optim.Adam([a, b], lr=0.01)
observed = D.Beta(2.0, 5.0).sample((STEPS, 8)).clamp(0.01, 0.99)
for epoch in range(EPOCHS):
    for y in observed:
        beta = D.Beta(F.softplus(a), F.softplus(b), validate_args=False)
        loss = -beta.log_prob(y).mean()
        loss = loss - 0.01 * D.Gamma(2.0, 1.0).log_prob(F.softplus(a))
        opt.zero_grad()
        loss.backward()
        opt.step()
    mark()
weights = D.Dirichlet(torch.ones(3)).sample()
print(loss.item(), beta.mean.item(), weights.sum().item())

# %% mixture_and_transformed
means = nn.Parameter(torch.tensor([-1.0, 0.0, 1.0]))
opt = torch.optim.SGD([means], lr=0.02)
mix = D.Categorical(torch.tensor([0.2, 0.3, 0.5]))
points = torch.where(torch.rand(STEPS, 10) < 0.4, -2.0, 1.5) + 0.3 * torch.randn(STEPS, 10)
for epoch in range(EPOCHS):
    for y in points:
        mixture = D.MixtureSameFamily(mix, D.Normal(means, torch.ones(3) * 0.8))
        base = D.Normal(0.0, 1.0)
        squashed = D.TransformedDistribution(base, [D.transforms.TanhTransform(cache_size=1)])
        loss = -mixture.log_prob(y).mean() - 0.01 * squashed.log_prob(torch.tanh(y / 4)).mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
    mark()
print(loss.item(), means.tolist(), mixture.sample((3,)).shape)

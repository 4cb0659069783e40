# Generative models: autoencoders, adversaries, diffusion, flows, images optimized, energies, codes.
data = torch.tanh(torch.randn(STEPS, 6, 8) @ torch.randn(8, 8) * 0.4)

# %% variational_autoencoder
class VAE(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1, self.fc21, self.fc22 = nn.Linear(8, 12), nn.Linear(12, 3), nn.Linear(12, 3)
        self.fc3, self.fc4 = nn.Linear(3, 12), nn.Linear(12, 8)

    def reparameterize(self, mu, logvar):
        std = torch.exp(0.5 * logvar)
        return mu + torch.randn_like(std) * std

    def forward(self, x):
        h = F.relu(self.fc1(x))
        mu, logvar = self.fc21(h), self.fc22(h)
        z = self.reparameterize(mu, logvar)
        return torch.sigmoid(self.fc4(F.relu(self.fc3(z)))), mu, logvar


model = VAE()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
for epoch in range(EPOCHS):
    train_loss = 0
    for x in data.add(1).div(2):
        optimizer.zero_grad()
        recon, mu, logvar = model(x)
        bce = F.binary_cross_entropy(recon, x, reduction="sum")
        loss = bce - 0.5 * torch.sum(1 + logvar - mu.pow(2) - logvar.exp())
        loss.backward()
        train_loss += loss.item()
        optimizer.step()
    mark()
print(f"{train_loss / STEPS:.4f}")

# %% adversarial_two_optimizers
G = nn.Sequential(nn.Linear(4, 12), nn.ReLU(), nn.Linear(12, 8), nn.Tanh())
D = nn.Sequential(nn.Linear(8, 12), nn.LeakyReLU(0.2), nn.Linear(12, 1))
criterion = nn.BCEWithLogitsLoss()
opt_d = torch.optim.Adam(D.parameters(), lr=2e-4, betas=(0.5, 0.999))
opt_g = torch.optim.Adam(G.parameters(), lr=2e-4, betas=(0.5, 0.999))
for epoch in range(EPOCHS):
    for real in data:
        D.zero_grad()
        label = torch.full((6, 1), 1.0)
        err_real = criterion(D(real), label)
        err_real.backward()
        fake = G(torch.randn(6, 4))
        label.fill_(0.0)
        err_fake = criterion(D(fake.detach()), label)
        err_fake.backward()
        opt_d.step()
        G.zero_grad()
        label.fill_(1.0)
        err_g = criterion(D(fake), label)
        err_g.backward()
        opt_g.step()
    mark()
print((err_real + err_fake).item(), err_g.item(), fake.mean().item())

# %% diffusion_train_and_sample
T = 20
beta = torch.linspace(1e-3, 0.2, T)
alpha_bar = torch.cumprod(1 - beta, dim=0)
net = nn.Sequential(nn.Linear(9, 24), nn.SiLU(), nn.Linear(24, 8))
opt = torch.optim.AdamW(net.parameters(), lr=1e-3)


@torch.no_grad()
def sample(n):
    x = torch.randn(n, 8)
    for t in reversed(range(T)):
        eps = net(torch.cat([x, torch.full((n, 1), t / T)], dim=1))
        x = (x - beta[t] / (1 - alpha_bar[t]).sqrt() * eps) / (1 - beta[t]).sqrt()
        if t > 0:
            x = x + beta[t].sqrt() * torch.randn_like(x)
    return x.clamp(-1, 1)


for epoch in range(EPOCHS):
    for x in data:
        t = torch.randint(0, T, (len(x),))
        noise, a = torch.randn_like(x), alpha_bar[t][:, None]
        noisy = a.sqrt() * x + (1 - a).sqrt() * noise
        loss = F.mse_loss(net(torch.cat([noisy, t[:, None] / T], dim=1)), noise)
        opt.zero_grad()
        loss.backward()
        opt.step()
    made = sample(5)
    mark()
print(loss.item(), made.abs().mean().item())

# %% coupling_flow
class Coupling(nn.Module):
    def __init__(self, flip):
        super().__init__()
        self.flip = flip
        self.net = nn.Sequential(nn.Linear(4, 12), nn.Tanh(), nn.Linear(12, 8))

    def forward(self, x):
        a, b = x.chunk(2, dim=1)[::-1] if self.flip else x.chunk(2, dim=1)
        s, t = self.net(a).chunk(2, dim=1)
        s = torch.tanh(s)
        b = b * s.exp() + t
        return torch.cat([b, a] if self.flip else [a, b], dim=1), s.sum(1)


flow = nn.ModuleList([Coupling(k % 2 == 1) for k in range(2)])
opt = torch.optim.Adam(flow.parameters(), lr=1e-3)
for epoch in range(EPOCHS):
    for x in data:
        z, logdet = x, 0
        for layer in flow:
            z, change = layer(z)
            logdet = logdet + change
        loss = (0.5 * z.pow(2).sum(1) - logdet).mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
    mark()
print(loss.item(), z.std().item())

# %% autoregressive_characters
text = "the cat sat on the mat and the dog sat on the log. " * 8
chars = sorted(set(text))
stoi = {c: k for k, c in enumerate(chars)}
codes = torch.tensor([stoi[c] for c in text])
embed, gru, head = nn.Embedding(len(chars), 8), nn.GRU(8, 12), nn.Linear(12, len(chars))
opt = torch.optim.Adam([p for m in (embed, gru, head) for p in m.parameters()], lr=2e-3)
for epoch in range(EPOCHS):
    hidden = None
    for i in range(STEPS):
        piece = codes[i * 6:i * 6 + 7]
        out, hidden = gru(embed(piece[:-1])[:, None], hidden)
        hidden = hidden.detach()
        loss = F.cross_entropy(head(out[:, 0]), piece[1:])
        opt.zero_grad()
        loss.backward()
        opt.step()
    mark()
letter, written = codes[0], ""
for _ in range(8):
    with torch.no_grad():
        out, hidden = gru(embed(letter).view(1, 1, -1), hidden)
        letter = head(out[0, 0]).argmax()
    written += chars[letter]
print(repr(written), len(chars), loss.item())

# %% style_transfer_of_an_image
features = nn.Sequential(nn.Conv2d(3, 6, 3, padding=1), nn.Softplus(), nn.Conv2d(6, 8, 3, stride=2))
features.requires_grad_(False)
content, style = torch.rand(1, 3, 10, 10), torch.rand(1, 3, 10, 10)


def gram(f):
    _, c, h, w = f.shape
    f = f.view(c, h * w)
    return f @ f.t() / (c * h * w)


with torch.no_grad():
    wanted, texture = features(content), gram(features(style))
image = content.clone().requires_grad_(True)
opt = torch.optim.Adam([image], lr=1e-3)
for epoch in range(EPOCHS):
    for i in range(STEPS):
        opt.zero_grad()
        f = features(image)
        variation = image.diff(dim=2).pow(2).mean() + image.diff(dim=3).pow(2).mean()
        loss = F.mse_loss(f, wanted) + 10 * F.mse_loss(gram(f), texture) + 0.1 * variation
        loss.backward()
        opt.step()
        with torch.no_grad():
            image.clamp_(0, 1)
    mark()
print(loss.item(), image.mean().item())

# %% energy_and_langevin
energy = nn.Sequential(nn.Linear(8, 16), nn.Softplus(), nn.Linear(16, 1))
opt = torch.optim.SGD(energy.parameters(), lr=0.01)
chains = torch.randn(6, 8)
for epoch in range(EPOCHS):
    for real in data:
        for _ in range(2):
            chains = chains.detach().requires_grad_(True)
            slope, = torch.autograd.grad(energy(chains).sum(), chains)
            chains = chains - 0.1 * slope + 0.05 * torch.randn_like(chains)
        chains = chains.detach().clamp(-1.5, 1.5)
        positive, negative = energy(real), energy(chains)
        loss = positive.mean() - negative.mean() + 0.1 * (positive ** 2 + negative ** 2).mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
    mark()
print(loss.item(), chains.mean().item())

# %% vector_quantized_codes
class Quantizer(nn.Module):
    def __init__(self, n, dim):
        super().__init__()
        self.codes = nn.Embedding(n, dim)
        self.codes.weight.data.uniform_(-1, 1)

    def forward(self, z):
        distance = z.pow(2).sum(1, keepdim=True) - 2 * z @ self.codes.weight.t()
        index = (distance + self.codes.weight.pow(2).sum(1)).argmin(dim=1)
        q = self.codes(index)
        loss = F.mse_loss(q, z.detach()) + 0.25 * F.mse_loss(z, q.detach())
        return z + (q - z).detach(), loss, index


encode, quantize, decode = nn.Linear(8, 4), Quantizer(10, 4), nn.Linear(4, 8)
opt = torch.optim.Adam(nn.ModuleList([encode, quantize, decode]).parameters(), lr=1e-3)
usage = torch.zeros(10, dtype=torch.long)
for epoch in range(EPOCHS):
    for x in data:
        q, commitment, index = quantize(encode(x))
        loss = F.mse_loss(decode(q), x) + commitment
        opt.zero_grad()
        loss.backward()
        opt.step()
        usage += torch.bincount(index, minlength=10)
    mark()
print(loss.item(), usage.sum().item(), commitment.item())

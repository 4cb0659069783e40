# Random numbers: functions, generators, seeds, states, and layers that draw.
layer = nn.Linear(8, 8)
x = torch.randn(4, 8)

# %% noise_of_each_kind
for epoch in range(EPOCHS):
    for i in range(STEPS):
        noise = torch.randn(4, 8) * 0.1 + torch.rand(8) - 0.5
        noise += torch.randn_like(x) * 0.01 + torch.rand_like(x[:1])
        whole = torch.randint(-2, 3, (4, 1)) + torch.randint_like(x, 2)
        with torch.no_grad():
            x = torch.tanh(layer(x) + noise + 0.1 * whole)
    mark()
print(x, torch.rand(()).item())

# %% own_generators
make, other = torch.Generator().manual_seed(1), torch.Generator()
other.manual_seed(2)
for epoch in range(EPOCHS):
    for i in range(STEPS):
        a = torch.randn(4, 8, generator=make)
        b = torch.empty(4, 8).uniform_(-1, 1, generator=other)
        c = torch.randint(0, 10, (4,), generator=make if i % 2 else other)
        with torch.no_grad():
            x = torch.sin(layer(x) + 0.1 * a * b) + c[:, None] / 20
    mark()
print(x.sum().item(), make.initial_seed(), torch.randn(1, generator=other).item())

# %% permutations
batch = torch.randn(12, 8)
first = torch.zeros(12, dtype=torch.long)
for epoch in range(EPOCHS):
    for i in range(STEPS):
        order = torch.randperm(12)
        first[order[0]] += 1
        part = batch[order[:4]]
        inverse = torch.argsort(order)
        assert torch.equal(order[inverse], torch.arange(12))
        with torch.no_grad():
            x = torch.tanh(layer(part) + 0.5 * x[torch.randperm(4)])
    mark()
print(x.sum().item(), first.sum().item(), first.tolist())

# %% multinomial_draws
weights = torch.tensor([0.1, 0.2, 0.3, 0.4, 0.0])
counts = torch.zeros(5)
for epoch in range(EPOCHS):
    for i in range(STEPS):
        many = torch.multinomial(weights, 6, replacement=True)
        few = torch.multinomial(weights.repeat(3, 1), 2)
        counts += torch.bincount(many, minlength=5)
        x = torch.sin(x + F.one_hot(few[:, 0], 8).sum(0) * 0.3)
    mark()
print(counts / counts.sum(), x.sum().item(), few.shape)

# %% bernoulli_masks
keep, kept = 0.75, 0
for epoch in range(EPOCHS):
    for i in range(STEPS):
        mask = torch.bernoulli(torch.full((4, 8), keep))
        rows = torch.empty(4, 1).bernoulli_(0.9)
        coin = torch.rand(1) < 0.5
        kept += int(mask.sum())
        with torch.no_grad():
            y = layer(x) * mask / keep
            extra = torch.bernoulli(x.sigmoid())
            x = torch.tanh(y * rows + (0.2 if coin else -0.2) + 0.1 * extra)
    mark()
print(kept, x.sum().item())

# %% normal_and_other_fills
for epoch in range(EPOCHS):
    for i in range(STEPS):
        a = torch.normal(0.0, 0.1, size=(4, 8))
        b = torch.normal(x, torch.full_like(x, 0.05))
        c = torch.empty(8).normal_(mean=0.1, std=0.01)
        d = torch.empty(4, 1).exponential_(2.0).clamp_(max=1)
        d = d + torch.zeros(4, 8).log_normal_(0, 0.1)
        e = torch.empty(8).random_(0, 4) + torch.poisson(torch.ones(8))
        with torch.no_grad():
            x = torch.tanh(layer(b) + a * c + 0.1 * d - 0.01 * e)
    mark()
print(x.sum().item(), x.std().item())

# %% dropout_layers_and_functions
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1, self.fc2 = nn.Linear(8, 16), nn.Linear(16, 8)
        self.drop, self.alpha = nn.Dropout(0.2), nn.AlphaDropout(0.1)

    def forward(self, x):
        h = self.drop(F.relu(self.fc1(x)))
        h = F.dropout(h, p=0.1, training=self.training)
        h = F.feature_alpha_dropout(h.unsqueeze(-1), 0.1, self.training).squeeze(-1)
        return self.fc2(self.alpha(h))


net = Net()
opt = torch.optim.SGD(net.parameters(), lr=0.01)
for epoch in range(EPOCHS):
    net.train()
    for i in range(STEPS):
        loss = F.mse_loss(net(x), x)
        opt.zero_grad()
        loss.backward()
        opt.step()
    net.eval()
    mark()
print(loss.item(), net(x).sum().item())

# %% states_saved_and_restored
draws = []
for epoch in range(EPOCHS):
    for i in range(STEPS):
        state = torch.get_rng_state()
        a = torch.randn(4, 8)
        torch.set_rng_state(state)
        b = torch.randn(4, 8)
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(i)
            c = torch.rand(4, 8)
        assert torch.equal(a, b)
        with torch.no_grad():
            x = torch.tanh(layer(x) + 0.5 * a + 0.1 * c)
    draws.append(c[0, 0].item())
    mark()
print(x.sum().item(), draws[0] == draws[-1], torch.rand(1).item())

# %% seeded_in_every_epoch
sums = []
for epoch in range(EPOCHS):
    generator = torch.manual_seed(epoch % 3)
    x = torch.zeros(4, 8)
    for i in range(STEPS):
        with torch.no_grad():
            y = layer(x + torch.randn(4, 8) * 0.3)
            x = torch.tanh(y + torch.rand(8)) * (1 + 0.1 * torch.randn(4, 1))
    sums.append(round(x.sum().item(), 4))
    mark()
print(sums, len(set(sums)), generator is torch.default_generator, torch.initial_seed())

# %% gumbel_softmax
logits = nn.Parameter(torch.zeros(4, 8))
opt = torch.optim.Adam([logits], lr=0.01)
target = torch.arange(4)
for epoch in range(EPOCHS):
    for i in range(STEPS):
        soft = F.gumbel_softmax(logits, tau=1.0)
        gumbel = -torch.empty_like(logits).exponential_().log()
        mine = torch.softmax((logits + gumbel) / 0.8, dim=-1)
        hard = F.gumbel_softmax(logits, tau=0.5, hard=True)
        loss = -(soft + mine)[torch.arange(4), target].mean() + 0.01 * hard[:, 0].sum()
        opt.zero_grad()
        loss.backward()
        opt.step()
    mark()
print(logits.softmax(1).diagonal().tolist(), hard.sum().item())

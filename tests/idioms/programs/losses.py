# Losses: the classes and functions, their reductions and weights, and ones written by hand.
model = nn.Sequential(nn.Linear(8, 24), nn.Tanh(), nn.Linear(24, 5))
opt = torch.optim.SGD(model.parameters(), lr=0.02)
inputs = torch.randn(STEPS, 6, 8)
labels = torch.randint(0, 5, (STEPS, 6))
values = torch.randn(STEPS, 6, 5)

# %% cross_entropy_class
criterion = nn.CrossEntropyLoss()
history = []
for epoch in range(EPOCHS):
    total = 0.0
    for x, t in zip(inputs, labels):
        opt.zero_grad()
        loss = criterion(model(x), t)
        loss.backward()
        opt.step()
        total += loss.item()
    history.append(total / STEPS)
    mark()
print(" ".join(f"{each:.4f}" for each in history))

# %% cross_entropy_weights_and_smoothing
weight = torch.tensor([1.0, 2.0, 0.5, 1.0, 3.0])
criterion = nn.CrossEntropyLoss(weight=weight, label_smoothing=0.1)
for epoch in range(EPOCHS):
    for i in range(STEPS):
        loss = criterion(model(inputs[i]), labels[i])
        opt.zero_grad(set_to_none=True)
        loss.backward()
        opt.step()
    mark()
print(f"{loss.item():.5f}", model[0].weight.grad.abs().sum())

# %% cross_entropy_ignore_index
labels[labels == 4] = -100
correct = counted = 0
for epoch in range(EPOCHS):
    for x, t in zip(inputs, labels):
        logits = model(x)
        loss = F.cross_entropy(logits, t, ignore_index=-100, reduction="sum")
        loss = loss / (t != -100).sum().clamp(min=1)
        opt.zero_grad()
        loss.backward()
        opt.step()
        counted += (t != -100).sum().item()
    mark()
print(loss.item(), counted)

# %% cross_entropy_of_probabilities
def soften(t, classes=5, temperature=0.3):
    return torch.softmax(F.one_hot(t, classes).float() / temperature, dim=-1)


targets = [soften(t) for t in labels]
for epoch in range(EPOCHS):
    for x, t in zip(inputs, targets):
        loss = F.cross_entropy(model(x), t)
        model.zero_grad()
        loss.backward()
        with torch.no_grad():
            for p in model.parameters():
                p -= 0.02 * p.grad
    mark()
print(loss.item(), [round(p.norm().item(), 3) for p in model.parameters()])

# %% nll_of_log_softmax
class Classifier(nn.Module):
    def __init__(self, body):
        super().__init__()
        self.body = body
        self.criterion = nn.NLLLoss(reduction="none")

    def forward(self, x, target=None):
        scores = F.log_softmax(self.body(x), dim=1)
        return scores if target is None else self.criterion(scores, target)


net = Classifier(model)
for epoch in range(EPOCHS):
    for x, t in zip(inputs, labels):
        opt.zero_grad()
        each = net(x, t)
        (each * each.detach().sigmoid()).mean().backward()
        opt.step()
    mark()
with torch.no_grad():
    print(each.sum(), net(inputs[0]).exp().sum())

# %% mse_and_l1_mixed
alpha = 0.3
for epoch in range(EPOCHS):
    for x, t in zip(inputs, values):
        y = model(x)
        loss = alpha * F.l1_loss(y, t) + (1 - alpha) * F.mse_loss(y, t, reduction="sum") / len(y)
        opt.zero_grad()
        loss.backward()
        opt.step()
    mark()
print("loss", loss.item(), "out", y.sum().item())

# %% huber_and_smooth_l1
criteria = [nn.HuberLoss(delta=0.5), nn.SmoothL1Loss(beta=2.0), nn.SmoothL1Loss()]
sums = [0.0] * len(criteria)
for epoch in range(EPOCHS):
    for i, (x, t) in enumerate(zip(inputs, values)):
        which = i % len(criteria)
        loss = criteria[which](model(x), t)
        opt.zero_grad()
        loss.backward()
        opt.step()
        sums[which] += loss.item()
    mark()
print(sums)

# %% bce_with_logits_and_pos_weight
targets = (values > 0).float()
criterion = nn.BCEWithLogitsLoss(pos_weight=torch.full((5,), 2.0))
hits = 0
for epoch in range(EPOCHS):
    for x, t in zip(inputs, targets):
        logits = model(x)
        loss = criterion(logits, t)
        opt.zero_grad()
        loss.backward()
        opt.step()
        hits += ((logits > 0).float() == t).sum().item()
    mark()
print(loss.item(), 0 < hits <= EPOCHS * STEPS * 30)

# %% bce_of_sigmoid
discriminator = nn.Sequential(model, nn.Linear(5, 1), nn.Sigmoid())
bce = nn.BCELoss()
ones, zeros = torch.ones(6, 1), torch.zeros(6, 1)
for epoch in range(EPOCHS):
    for i in range(STEPS):
        real = bce(discriminator(inputs[i]), ones)
        fake = bce(discriminator(-inputs[i]), zeros)
        opt.zero_grad()
        (real + fake).backward()
        opt.step()
    mark()
print(real.item(), fake.item())

# %% kl_divergence_distillation
teacher = nn.Linear(8, 5).requires_grad_(False)
temperature = 2.0


def distill(student, teacher, t):
    student = F.log_softmax(student / t, dim=-1)
    return F.kl_div(student, F.softmax(teacher / t, dim=-1), reduction="batchmean") * t * t


for epoch in range(EPOCHS):
    for x in inputs:
        opt.zero_grad()
        loss = distill(model(x), teacher(x), temperature)
        loss.backward()
        opt.step()
    mark()
print(f"{loss.item():.6f}")

# %% triplet_margin
criterion = nn.TripletMarginLoss(margin=4.0, p=2)
active = []
for epoch in range(EPOCHS):
    for i in range(STEPS):
        anchor, other = inputs[i], inputs[(i + 1) % STEPS]
        loss = criterion(model(anchor), model(anchor + 0.05), model(other))
        opt.zero_grad()
        loss.backward()
        opt.step()
    active.append(loss.item() > 0)
    mark()
print(loss.item(), len(active))

# %% cosine_embedding_and_similarity
side = torch.where(torch.arange(6) % 2 == 0, 1.0, -1.0)
for epoch in range(EPOCHS):
    for x, t in zip(inputs, values):
        y = model(x)
        loss = F.cosine_embedding_loss(y, t, side, margin=0.2)
        loss = loss + 0.1 * (1 - F.cosine_similarity(y, t.flip(0), dim=1, eps=1e-6)).mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
    mark()
print(loss.item(), y.abs().mean().item())

# %% hinge_margin_family
losses = {
    "multi_margin": lambda y, t: F.multi_margin_loss(y, t, margin=0.5),
    "multilabel": lambda y, t: F.multilabel_soft_margin_loss(y, F.one_hot(t, 5).float()),
    "soft_margin": lambda y, t: F.soft_margin_loss(y, F.one_hot(t, 5) * 2.0 - 1.0),
}
seen = {}
for epoch in range(EPOCHS):
    for i in range(STEPS):
        total = 0
        y = model(inputs[i])
        for name, f in losses.items():
            seen[name] = f(y, labels[i])
            total = total + seen[name]
        opt.zero_grad()
        total.backward()
        opt.step()
    mark()
print({name: round(value.item(), 4) for name, value in seen.items()})

# %% margin_ranking
scorer = nn.Sequential(model, nn.Linear(5, 1))
ranking = nn.MarginRankingLoss(margin=0.1)
for epoch in range(EPOCHS):
    for x in inputs:
        better, worse = scorer(x).squeeze(-1), scorer(x.roll(1, 0)).squeeze(-1)
        target = torch.sign(x[:, 0] - x.roll(1, 0)[:, 0])
        loss = ranking(better, worse, target)
        opt.zero_grad()
        loss.backward()
        opt.step()
    mark()
print(loss.item(), better.shape, (better - worse).abs().sum().item())

# %% gaussian_and_poisson_nll
log_rates, means = nn.Linear(5, 1), nn.Linear(5, 2)
counts = torch.poisson(torch.full((STEPS, 6, 1), 3.0))
for epoch in range(EPOCHS):
    for x, n in zip(inputs, counts):
        h = model(x)
        mean, raw = means(h).chunk(2, dim=1)
        loss = F.poisson_nll_loss(log_rates(h), n, log_input=True)
        loss = loss + 0.1 * F.gaussian_nll_loss(mean, n, F.softplus(raw) + 0.5)
        opt.zero_grad()
        loss.backward()
        opt.step()
    mark()
print(loss.item(), mean.mean())

# %% ctc
alphabet, length = 5, 12
encoder = nn.Conv1d(4, alphabet, 3, padding=1)
opt = torch.optim.SGD(encoder.parameters(), lr=0.01)
sound = torch.randn(10, 2, 4, length)
words = torch.randint(1, alphabet, (10, 2, 4))
ctc = nn.CTCLoss(blank=0)
lengths = torch.full((2,), length), torch.tensor([4, 3])
for epoch in range(EPOCHS):
    for i in range(STEPS):
        scores = encoder(sound[i % 10]).permute(2, 0, 1).log_softmax(2)
        loss = ctc(scores, words[i % 10], *lengths)
        opt.zero_grad()
        loss.backward()
        opt.step()
    mark()
print(loss.item(), tuple(scores.shape))

# %% focal_by_hand
class FocalLoss(nn.Module):
    def __init__(self, gamma=2.0, alpha=None, reduction="mean"):
        super().__init__()
        self.gamma, self.reduction = gamma, reduction
        self.register_buffer("alpha", alpha)

    def forward(self, logits, target):
        nll = F.cross_entropy(logits, target, weight=self.alpha, reduction="none")
        loss = (1 - torch.exp(-nll)) ** self.gamma * nll
        return {"mean": loss.mean, "sum": loss.sum}[self.reduction]()


focal = FocalLoss(alpha=torch.linspace(0.5, 1.5, 5))
for epoch in range(EPOCHS):
    for x, t in zip(inputs, labels):
        opt.zero_grad()
        loss = focal(model(x), t)
        loss.backward()
        opt.step()
    mark()
print(loss.item())

# %% dice_and_iou_by_hand
def overlap(p, t, eps=1.0):
    p, t = p.flatten(1), t.flatten(1)
    both, total = (p * t).sum(1), p.sum(1) + t.sum(1)
    return 1 - (2 * both + eps) / (total + eps), (both + eps) / (total - both + eps)


net = nn.Sequential(nn.Conv2d(1, 4, 3, padding=1), nn.ReLU(), nn.Conv2d(4, 1, 1), nn.Sigmoid())
opt = torch.optim.Adam(net.parameters(), 1e-3)
images = torch.rand(4, 2, 1, 10, 10)
masks = (F.avg_pool2d(images.flatten(0, 1), 3, 1, 1) > 0.5).float().view_as(images)
for epoch in range(EPOCHS):
    for i in range(STEPS):
        dice, iou = overlap(net(images[i % 4]), masks[i % 4])
        opt.zero_grad()
        dice.mean().backward()
        opt.step()
    mark()
print(dice.mean().item(), iou.detach().mean())

# %% info_nce
def info_nce(a, b, temperature=0.5):
    a, b = F.normalize(a, dim=1), F.normalize(b, dim=1)
    logits = a @ b.T / temperature
    target = torch.arange(len(a))
    return (F.cross_entropy(logits, target) + F.cross_entropy(logits.T, target)) / 2


noise = 0.1 * torch.randn(6, 8)
for epoch in range(EPOCHS):
    for x in inputs:
        loss = info_nce(model(x + noise), model(x - noise))
        opt.zero_grad()
        loss.backward()
        opt.step()
    mark()
print(loss.item())

# %% per_sample_weights_and_ohem
importance = torch.rand(STEPS, 6) + 0.5
kept = []
for epoch in range(EPOCHS):
    for x, t, w in zip(inputs, labels, importance):
        each = F.cross_entropy(model(x), t, reduction="none") * w
        hard = each.topk(4).values
        opt.zero_grad()
        hard.mean().backward()
        opt.step()
        kept.append(hard.min().item())
    mark()
print(sum(kept) / len(kept), hard.sum())

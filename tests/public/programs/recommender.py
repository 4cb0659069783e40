"""Ratings from factors, biases and a small net over embeddings, with embedding bags, weighted sampling and pairwise ranking, as recommender tutorials do."""

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset, WeightedRandomSampler

USERS, ITEMS, TAGS = 60, 40, 12
torch.manual_seed(24)


def ratings(count):
    taste, kind = torch.randn(USERS, 3), torch.randn(ITEMS, 3)
    users, items = torch.randint(USERS, (count,)), torch.randint(ITEMS, (count,))
    score = (taste[users] * kind[items]).sum(1) + 0.3 * torch.randn(count)
    return users, items, score.sigmoid() * 4 + 1


class Factors(nn.Module):
    def __init__(self, size=8):
        super().__init__()
        self.user, self.item = nn.Embedding(USERS, size), nn.Embedding(ITEMS, size)
        self.user_bias, self.item_bias = nn.Embedding(USERS, 1), nn.Embedding(ITEMS, 1)
        self.mean = nn.Parameter(torch.tensor(3.0))
        for table in (self.user, self.item):
            nn.init.normal_(table.weight, std=0.1)
        for table in (self.user_bias, self.item_bias):
            nn.init.zeros_(table.weight)

    def forward(self, users, items):
        return (self.user(users) * self.item(items)).sum(1) + self.user_bias(users).squeeze(1) + self.item_bias(items).squeeze(1) + self.mean


class Wide(nn.Module):
    """Embeddings, a bag of the item's tags, and a net behind them."""

    def __init__(self, tags, offsets, size=8):
        super().__init__()
        self.user, self.item = nn.Embedding(USERS, size, max_norm=2.0), nn.Embedding(ITEMS, size)
        self.bag = nn.EmbeddingBag(TAGS, size, mode="mean")
        self.register_buffer("tags", tags)
        self.register_buffer("offsets", offsets)
        self.net = nn.Sequential(nn.Linear(3 * size, 24), nn.PReLU(), nn.AlphaDropout(0.05), nn.Linear(24, 1))

    def forward(self, users, items):
        described = self.bag(self.tags, self.offsets)[items]
        return self.net(torch.cat([self.user(users), self.item(items), described], dim=1)).squeeze(1) + 3


def fit(name, model, train, test, optimizer, epochs):
    users, items, values = train
    weights = 1.0 / torch.bincount(users, minlength=USERS)[users].float()
    sampler = WeightedRandomSampler(weights, 512, generator=torch.Generator().manual_seed(1))
    loader = DataLoader(TensorDataset(*train), batch_size=32, sampler=sampler)
    for epoch in range(epochs):
        model.train()
        total = 0.0
        for u, i, r in loader:
            loss = F.huber_loss(model(u, i), r)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item()
        model.eval()
        with torch.no_grad():
            rmse = F.mse_loss(model(test[0], test[1]), test[2]).sqrt().item()
        print(f"{name} epoch {epoch}: loss {total / len(loader):.4f} rmse {rmse:.4f}")


def rank(model, train, epochs):
    """Bayesian personalised ranking on what users liked."""
    liked = train[2] > 3.5
    users, items = train[0][liked], train[1][liked]
    optimizer = torch.optim.Adagrad(model.parameters(), lr=0.1)
    seen = torch.zeros(USERS, ITEMS, dtype=torch.bool)
    seen[users, items] = True
    for epoch in range(epochs):
        total = 0.0
        for batch in torch.randperm(len(users)).split(64):
            u, positive = users[batch], items[batch]
            negative = torch.randint(ITEMS, positive.shape)
            again = seen[u, negative]
            while again.any():
                negative[again] = torch.randint(ITEMS, (int(again.sum()),))
                again = seen[u, negative]
            loss = -F.logsigmoid(model(u, positive) - model(u, negative)).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item() * len(batch)
        with torch.no_grad():
            scores = torch.stack([model(torch.full((ITEMS,), user), torch.arange(ITEMS)) for user in range(USERS)])
            hits = seen.gather(1, scores.topk(5).indices).float().mean().item()
        print(f"ranking epoch {epoch}: loss {total / len(users):.4f} hits {hits:.4f}")


everything = ratings(900)
train, test = tuple(part[:750] for part in everything), tuple(part[750:] for part in everything)
factors = Factors()
fit("factors", factors, train, test, torch.optim.Adam(factors.parameters(), lr=0.02, weight_decay=1e-5), 5)
counts = torch.randint(1, 4, (ITEMS,))
wide = Wide(torch.randint(TAGS, (int(counts.sum()),)), torch.cat([torch.zeros(1, dtype=torch.long), counts.cumsum(0)[:-1]]))
fit("wide", wide, train, test, torch.optim.RAdam(wide.parameters(), lr=0.01), 5)
rank(factors, train, 4)

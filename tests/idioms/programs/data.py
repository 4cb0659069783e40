# Data: loaders, sets, samplers, batches made by hand, and what changes their sizes.
import random
from collections import deque

import numpy as np
from torch.utils.data import (BatchSampler, DataLoader, Dataset, IterableDataset, RandomSampler,
                              SequentialSampler, Subset, TensorDataset, WeightedRandomSampler,
                              random_split)

random.seed(0)
np.random.seed(0)
features = torch.randn(200, 6)
labels = (features.sum(1) > 0).long()
model = nn.Sequential(nn.Linear(6, 12), nn.ReLU(), nn.Linear(12, 2))
opt = torch.optim.SGD(model.parameters(), lr=0.05)


def learn(x, t):
    loss = F.cross_entropy(model(x), t)
    opt.zero_grad()
    loss.backward()
    opt.step()
    return loss

# %% loader_with_shuffle
loader = DataLoader(TensorDataset(features, labels), batch_size=4, shuffle=True)
for epoch in range(EPOCHS):
    running = 0.0
    for step, (x, t) in enumerate(loader):
        opt.zero_grad()
        loss = F.cross_entropy(model(x), t)
        loss.backward()
        opt.step()
        running += loss.item() * x.size(0)
    mark()
print(f"{running / len(loader.dataset):.4f}", step + 1)

# %% custom_dataset_with_transform
class Points(Dataset):
    def __init__(self, transform=None):
        self.transform = transform

    def __len__(self):
        return len(features)

    def __getitem__(self, index):
        x = features[index]
        return (self.transform(x) if self.transform else x), labels[index].item()


loader = DataLoader(Points(lambda x: (x - 0.1) / 1.1), batch_size=4, drop_last=True)
for epoch in range(EPOCHS):
    correct = 0
    for x, t in loader:
        learn(x, t)
        with torch.no_grad():
            correct += (model(x).argmax(1) == t).sum().item()
    mark()
print(correct, len(loader))

# %% list_of_batches
batches = [(x, t) for x, t in zip(features.split(4), labels.split(4))]
for epoch in range(EPOCHS):
    random.shuffle(batches)
    losses = [learn(x, t).item() for x, t in batches]
    mark()
print(sum(losses) / len(losses), len(batches))

# %% iterable_dataset_stream
class Stream(IterableDataset):
    def __init__(self, count):
        self.count = count

    def __iter__(self):
        generator = torch.Generator().manual_seed(7)
        for _ in range(self.count):
            x = torch.randn(6, generator=generator)
            yield x, (x[0] > 0).long()


loader = DataLoader(Stream(STEPS * 4), batch_size=4)
seen = 0
for epoch in range(EPOCHS):
    for x, t in loader:
        loss = learn(x, t)
        seen += len(t)
    mark()
print(loss.item(), seen)

# %% custom_collate_to_dict
def collate(samples):
    xs, ts = zip(*samples)
    x = torch.stack(xs)
    return {"x": x, "t": torch.stack(ts), "norm": x.norm(dim=1, keepdim=True), "n": len(samples)}


loader = DataLoader(TensorDataset(features, labels), batch_size=4, collate_fn=collate)
total = 0
for epoch in range(EPOCHS):
    for batch in loader:
        batch = {k: v.clone() if torch.is_tensor(v) else v for k, v in batch.items()}
        loss = learn(batch["x"] / batch["norm"], batch["t"])
        total += batch["n"]
    mark()
print(loss.item(), total, list(batch))

# %% split_train_and_validation
whole = TensorDataset(features, labels)
train, valid = random_split(whole, [160, 40], generator=torch.Generator().manual_seed(1))
train_loader = DataLoader(train, batch_size=4, shuffle=True)
valid_loader = DataLoader(valid, batch_size=4)
accuracy = []
for epoch in range(EPOCHS):
    model.train()
    for x, t in train_loader:
        learn(x, t)
    model.eval()
    with torch.no_grad():
        right = sum((model(x).argmax(1) == t).float().sum().item() for x, t in valid_loader)
    accuracy.append(right / len(valid))
    mark()
print(accuracy[-1], len(train), len(Subset(train, range(10))))

# %% samplers
weights = torch.where(labels == 1, 1.0, 2.0)
sampler = WeightedRandomSampler(weights, num_samples=200, replacement=True)
batched = BatchSampler(RandomSampler(range(200)), batch_size=4, drop_last=False)
ones = 0
for epoch in range(EPOCHS):
    choice = BatchSampler(sampler, 4, True) if epoch % 2 else batched
    for index in choice:
        x, t = features[index], labels[index]
        loss = learn(x, t)
        ones += t.sum().item()
    mark()
print(loss.item(), ones, len(list(SequentialSampler(labels))))

# %% numpy_batches_in_the_loop
rng = np.random.default_rng(3)
for epoch in range(EPOCHS):
    for i in range(STEPS):
        array = rng.normal(size=(4, 6)).astype(np.float32)
        array[:, 0] += 0.5
        target = (array.sum(axis=1) > 0).astype(np.int64)
        loss = learn(torch.from_numpy(array), torch.from_numpy(target))
    mark()
print(loss.item(), np.random.rand() < 1, target.dtype)

# %% augmentations_by_random_choice
def shift(x):
    return x + random.uniform(-0.1, 0.1)


def drop(x):
    return x * (torch.arange(6) != random.randrange(6))


def flip(x):
    return x.flip(0) if random.random() < 0.2 else x


used = {}
for epoch in range(EPOCHS):
    for i in range(STEPS):
        augment = random.choice([shift, drop, flip])
        used[augment.__name__] = used.get(augment.__name__, 0) + 1
        rows = random.sample(range(200), k=4)
        loss = learn(augment(features[rows]), labels[rows])
    mark()
print(loss.item(), sorted(used.items()))

# %% padded_sequences_of_changing_length
embed, head = nn.Embedding(20, 8, padding_idx=0), nn.Linear(8, 2)
opt = torch.optim.SGD([*embed.parameters(), *head.parameters()], lr=0.05)
texts = [torch.randint(1, 20, (random.randint(2, 9),)) for _ in range(200)]
for epoch in range(EPOCHS):
    for i in range(0, 200, 4):
        words = nn.utils.rnn.pad_sequence(texts[i:i + 4], batch_first=True)
        lengths = torch.tensor([len(text) for text in texts[i:i + 4]])
        mask = torch.arange(words.size(1))[None, :] < lengths[:, None]
        mean = (embed(words) * mask[..., None]).sum(1) / lengths[:, None]
        loss = F.cross_entropy(head(mean), labels[i:i + 4])
        opt.zero_grad()
        loss.backward()
        opt.step()
    mark()
print(loss.item(), words.shape)

# %% buckets_by_length
series = [torch.randn(random.choice([3, 5, 8]), 6) for _ in range(200)]
buckets = {}
for index, each in enumerate(series):
    buckets.setdefault(len(each), []).append(index)
sizes = []
for epoch in range(EPOCHS):
    plan = [part[k:k + 4] for part in buckets.values() for k in range(0, len(part), 4)]
    random.shuffle(plan)
    for part in plan[:STEPS]:
        batch = torch.stack([series[index] for index in part])
        loss = learn(batch.mean(1), labels[torch.tensor(part)])
    sizes.append(tuple(batch.shape[1:]))
    mark()
print(loss.item(), set(sizes) <= {(3, 6), (5, 6), (8, 6)})

# %% prefetching_generator
class Prefetcher:
    def __init__(self, loader, depth=2):
        self.source, self.queue = iter(loader), deque()
        for _ in range(depth):
            self.preload()

    def preload(self):
        try:
            x, t = next(self.source)
        except StopIteration:
            return
        self.queue.append((x.to("cpu", non_blocking=True), t))

    def __iter__(self):
        while self.queue:
            batch = self.queue.popleft()
            self.preload()
            yield batch


for epoch in range(EPOCHS):
    for x, t in Prefetcher(zip(features.split(4), labels.split(4))):
        loss = learn(x, t)
    mark()
print(loss.item(), x.shape)

# %% replay_buffer
memory = deque(maxlen=64)
for epoch in range(EPOCHS):
    for i in range(STEPS):
        k = (epoch * STEPS + i) % 200
        memory.append((features[k], labels[k], i))
        if len(memory) < 8:
            continue
        batch = random.sample(memory, 4)
        xs, ts, ages = map(list, zip(*batch))
        weight = 1.0 / (1 + torch.tensor(ages, dtype=torch.float32).mean() / STEPS)
        loss = F.cross_entropy(model(torch.stack(xs)), torch.tensor([t.item() for t in ts]))
        opt.zero_grad()
        (weight * loss).backward()
        opt.step()
    mark()
print(loss.item(), len(memory), memory[0][2])

# %% shuffled_indices_by_hand
mean, std = features.mean(0), features.std(0)
text = ((features - mean) / std).flatten()
block = 6
for epoch in range(EPOCHS):
    order = torch.randperm(len(features))
    for start in range(0, len(features), 4):
        index = order[start:start + 4]
        learn(features[index], labels[index])
        at = torch.randint(len(text) - block - 1, (4,))
        x = torch.stack([text[j:j + block] for j in at])
        loss = learn(x, (text[at + block] > 0).long())
    mark()
print(loss.item(), order.sum().item(), at.shape)

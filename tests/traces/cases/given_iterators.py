# Iterators made of iterators: zip(reversed(a), reversed(b)), enumerate(zip(a, b)), of one that goes on behind it, and numbers that torch.tensor is given in tuples.
# expect: compiled>=0.8
import torch

x = torch.linspace(-1, 1, 6)
scales, shifts = (0.5, 0.9, 0.7), (0.1, -0.2, 0.3)
for i in range(60):
    for k, (scale, shift) in enumerate(zip(scales, shifts)):
        x = torch.tanh(x * scale + shift + 0.01 * k)
print("enumerate of zip", f"{x.sum().item():.4f}")

for i in range(60):
    shape = x.view(2, 3).shape
    for a, b in zip(reversed(shape), reversed((2, 3))):
        x = torch.tanh(x * (0.5 if a == b else 0.25) + 0.1)
print("zip of reversed", f"{x.sum().item():.4f}")

seen = []
for i in range(60):
    it = iter(scales + shifts)
    pairs = []
    for a, b in zip(it, it):
        pairs.append((a, b))
        x = torch.tanh(x * a + b)
    seen.append((len(pairs), next(it, None)))
print("one iterator twice", f"{x.sum().item():.4f}", seen[-1])

for i in range(60):
    it = reversed(scales)
    for a, b in zip(it, shifts[:2]):
        x = torch.tanh(x * a + b)
    rest = list(it)
    seen.append(rest)
print("what zip left", f"{x.sum().item():.4f}", seen[-1])

for i in range(60):
    both = enumerate(reversed(scales))
    first = next(both)
    for k, a in both:
        x = torch.tanh(x * a + 0.01 * k)
        if k == i % 3:
            break
    seen.append((first, list(both)))
print("left early", f"{x.sum().item():.4f}", seen[-1], seen[-2])

for i in range(60):
    batch = [(k * i % 7, i % 3 == k, 0.5 * k) for k in range(4)]
    places, flags, rewards = zip(*batch)
    x = torch.tanh(x[:4].sum() * 0.1 + torch.tensor(rewards) - torch.tensor(places) * 0.1 + torch.tensor(flags, dtype=torch.float32))
    x = torch.cat([x, torch.as_tensor((i % 5, 1.5))])
print("numbers in tuples", f"{x.sum().item():.4f}")

# Numbers that change are stored into tensors, at places that change too, and by one number both: `losses[k] = loss.item()`, `t[i] = i`. The same number may be given to a call twice.
# expect: compiled>=0.9, recordings<=40
import torch

torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.Tanh(), torch.nn.Linear(16, 4))


@torch.no_grad()
def estimate():
    out = {}
    for split in ["train", "val"]:
        losses = torch.zeros(20)
        for k in range(20):
            loss = torch.nn.functional.cross_entropy(model(torch.randn(8, 8)), torch.randint(0, 4, (8,)))
            losses[k] = loss.item()
        out[split] = losses.mean().item()
    return out


for i in range(60):
    out = estimate()
print({name: round(value, 4) for name, value in out.items()})

t, whole, square = torch.zeros(60), torch.zeros(60, dtype=torch.long), torch.zeros(60, 60)
for i in range(60):
    t[i] = i
    whole[i] = i
    square[i, i] = i
    square[i][-1] = i + 0.5
print(t.sum().item(), whole.tolist() == list(range(60)), square.sum().item())

rows, parts, masked, kept = torch.zeros(60, 3), torch.zeros(120), torch.zeros(60), torch.zeros(4)
mask = torch.arange(60) % 7 == 0
x = torch.linspace(-1, 1, 6)
total = torch.zeros(6)
for i in range(60):
    value = (x * i).sum().item() + 0.25 * i
    rows[i] = value
    rows[i, 1] = i * 2
    parts[i:2 * i] = i
    masked[mask] = value
    kept[2] = value
    kept[...] = i - value
    total = total + torch.add(x, i, alpha=i) + torch.full((6,), i) + x.clamp(-i, i)
    total[i % 6] = i % 6
print(f"{rows.sum().item():.4f} {parts.sum().item():.1f} {masked.sum().item():.4f} {kept.tolist()} {total.sum().item():.3f}")

small = torch.zeros(300, dtype=torch.uint8)
try:
    for i in range(300):
        small[i] = i
except RuntimeError as error:
    print(i, str(error)[:60])
print(small.sum().item())
counts = torch.zeros(40, dtype=torch.long)
for i in range(40):
    counts[i] = i + 0.75
print(counts.sum().item())

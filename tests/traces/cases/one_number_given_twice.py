# Calls that are given one number in several places, as what is added and its factor, a size and what fills it, an index and what is stored there: each of its uses changes with it.
# expect: traces>=20
import torch
import torch.nn.functional as F

torch.manual_seed(0)
x = torch.linspace(-2, 2, 25).reshape(5, 5)
y = torch.linspace(-1, 1, 125).reshape(5, 5, 5)
z = torch.linspace(-1, 1, 128).reshape(1, 2, 8, 8)
n = torch.arange(10)

CALLS = [
    lambda i, j, f: torch.add(x, i, alpha=i),
    lambda i, j, f: torch.add(x, f, alpha=f),
    lambda i, j, f: torch.sub(x, i, alpha=i) + x * i + i,
    lambda i, j, f: torch.full((j,), j),
    lambda i, j, f: x.new_full((j, j), j),
    lambda i, j, f: torch.clamp(x, i, i) + torch.clamp(x, -f, f),
    lambda i, j, f: torch.where(x > f, f, -f) + x.masked_fill(x > i, i),
    lambda i, j, f: torch.addmm(x, x, x, beta=f, alpha=f) + torch.addcmul(x, x, x, value=i),
    lambda i, j, f: torch.roll(x, (i, i), (0, 1)),
    lambda i, j, f: x[j, j:].sum() + x[j] + x[j - 1:j, j - 1:j] + y[j, :, j] + y[j, j, j],
    lambda i, j, f: F.pad(x, (j, j), value=j),
    lambda i, j, f: torch.arange(j, 2 * j, j) + torch.linspace(f, f, 1),
    lambda i, j, f: torch.eye(j, j) * j + torch.ones(j, j) * j,
    lambda i, j, f: F.threshold(x, f, f) + F.hardtanh(x, -f - 9, f + 9),
    lambda i, j, f: F.max_pool2d(z, j, j).sum() + F.interpolate(z, size=(j, j)).sum(),
    lambda i, j, f: torch.tensor([[i, i], [j, j]]) + torch.tensor(i),
    lambda i, j, f: x.index_add(0, torch.tensor([0, 1]), x[:2], alpha=i) + torch.nan_to_num(x, nan=f, posinf=f),
    lambda i, j, f: x.as_strided((j, j), (1, 1), j),
    lambda i, j, f: x.clone().add_(i, alpha=i) + x.clone().add_(f, alpha=f),
    lambda i, j, f: torch._foreach_add([x, x], [x, x], alpha=i)[1] + torch._foreach_mul([x, x], f)[0],
    lambda i, j, f: (n & i) + (n ^ i) + (n == i) + n[j] * j,
]


def store(t, s, k, i, j, f):
    t[i] = i
    t[j:j + j] = j
    s[j, j] = j
    s[:, j] = f
    s[j, j:] += i
    s[-j, j] = i
    k[j] = j
    k[i % 7 + 8] = i
    s[s > i] = i
    s[[0, j]] = f


for number, call in enumerate(CALLS):
    sums = []
    for i in range(24):
        j, f = i % 4 + 1, i * 0.25 - 2.0
        result = call(i, j, f)
        sums.append(result.double().sum() + len(result.shape) + result.numel())
    print(number, [f"{value.item():.3f}" for value in sums])

t, s, k = torch.zeros(40), x.clone(), torch.zeros(40, dtype=torch.long)
weights = torch.arange(25.0).reshape(5, 5)
for i in range(36):
    store(t, s, k, i, i % 4 + 1, i * 0.25 - 2.0)
    if i % 6 == 5:
        print(i, f"{t.sum().item():.3f} {(s * weights).sum().item():.3f} {(k * torch.arange(40)).sum().item()}")

# Hash embeddings: integer arithmetic, shifts, masks and big integers choose rows of a small table.
# expect: compiled>=0.3, traces>=1
import torch

torch.manual_seed(68)
table = torch.randn(16, 4) * 0.1
PRIME = 0x9E3779B97F4A7C15


def row(token, seed):
    mixed = (token * PRIME + seed) & (2 ** 64 - 1)
    mixed ^= mixed >> 29
    return mixed % 16


text = "the quick brown fox jumps over the lazy dog and runs far away from it all".split()
context = torch.zeros(4)
used = set()
for step in range(60):
    word = text[step % len(text)]
    token = sum(ord(c) << (8 * k % 24) for k, c in enumerate(word))
    rows = [row(token, seed) for seed in (1, 7)]
    used.update(rows)
    context = 0.7 * context + table[rows[0]] - table[rows[1]] / (1 + bin(token).count("1"))
    table[rows[0]] += 0.01 * context
print(sorted(used), [f"{v:.4f}" for v in context.tolist()], f"{table.sum().item():.4f}", ~token & 0xFF)

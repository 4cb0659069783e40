# Rows and columns that a changing number picks are written and read in the same iteration; at times they are rows that constants pick too.
# expect: compiled>=0.75
import torch


def main():
    torch.manual_seed(0)
    out = torch.zeros(50, 8)
    h = torch.zeros(8)
    w = torch.rand(8, 8) * 0.3
    x = torch.rand(200, 3)
    total = 0.0
    for step in range(200):
        i = step % 50
        h = torch.tanh(h @ w + out[(i * 7) % 50])
        out[i] = h
        out[i, 2:5] += 1
        row = out[:, i % 8]
        row *= 0.99
        total += (x[8] * 2 - x[step] * 3 + x[6]).sum().item() + (x[4] * x[step - 1]).sum().item()
    for step in range(60):
        y = torch.zeros(60, 3)
        y[12] = 1
        y[step] = 2
        y[step][1] = 3
        total += (y[12] * y[step]).sum().item() + y[10:14].sum().item()
    print(f"{out.sum().item():.3f} {h.sum().item():.4f} {total:.2f}")


main()

# Slices whose length a number of the loop decides: the sizes are numbers of the run, wherever the slices begin and whoever writes the memory.
# expect: compiled>=0.85
import torch

torch.manual_seed(3)


def boxes():
    image = torch.arange(784.0).reshape(28, 28)
    total = torch.zeros(())
    for k in range(600):
        top, left, n = k % 7, (k * 3) % 5, 3 + k % 4
        part = image[top : top + n, left : left + 3]
        total = total + (part * 2).sum() + part.mean()
    return round(total.item(), 2)


def cache():
    wq, wk, wv = (torch.randn(16, 16) / 4 for _ in range(3))
    total = 0.0
    for _ in range(12):
        k, v, x = torch.zeros(2, 48, 16), torch.zeros(2, 48, 16), torch.randn(2, 1, 16)
        for t in range(40):
            k[:, t : t + 1] = x @ wk
            v[:, t : t + 1] = x @ wv
            weights = (x @ wq @ k[:, : t + 1].transpose(1, 2) / 4).softmax(-1)
            x = torch.tanh(weights @ v[:, : t + 1])
        total += x.sum().item()
    return round(total, 3)


def segments():
    flat = torch.randn(300, 4)
    sums = []
    for _ in range(60):
        at = 0
        for n in (3, 7, 5, 9, 4, 6, 8, 5, 12):
            sums.append((flat[at : at + n].mean(0) * 2).sum().item())
            at += n
    return round(sum(sums), 3)


def from_the_end():
    history, total = torch.zeros(400, 4), 0.0
    for t in range(2, 398):
        history[t] = torch.sin(torch.arange(4.0) + t)
        window = history[max(0, t - 5) : t + 1]
        total += window.mean().item() + history[-t:].sum().item() / 100 + history[:-t].abs().max().item()
    return round(total, 3)


def trained():
    data, w = torch.randn(400, 4), torch.randn(4, requires_grad=True)
    for t in range(3, 390):
        (data[:t] @ w).pow(2).mean().backward()
        with torch.no_grad():
            w -= 0.01 * w.grad
        w.grad = None
    return [round(x, 4) for x in w.tolist()]


def rows_of_slices():  # a row that a number says of a tensor whose size another one does
    flat, total = torch.randn(600, 5), 0.0
    for t in range(580):
        part = flat[t : t + 3 + t % 5]
        total += part[t % 3].sum().item() + part[1:].mean().item()
    return round(total, 3)


def kept():
    base, rows = torch.arange(1600.0).reshape(400, 4), []
    for t in range(2, 390):
        rows.append(base[t : t + t % 5 + 2])
    middle = rows[20]
    return sum(len(r) for r in rows), sum(r.sum().item() for r in rows), middle._base is base, middle.stride(), middle.storage_offset()


for run in (boxes, cache, segments, from_the_end, trained, rows_of_slices, kept):
    print(run.__name__, run())

# Tensors on parts of one NumPy array, each with a storage of its own: the memory is theirs together. They are followed as long as nobody writes them.
# expect: compiled>=0.6
import numpy as np
import torch

torch.manual_seed(0)


def shifted():
    data = np.sin(np.arange(12 * 48.0)).reshape(12, 48)
    inputs, targets = torch.from_numpy(data[:, :-1]), torch.from_numpy(data[:, 1:])
    w = torch.eye(47, dtype=torch.double, requires_grad=True)
    for _ in range(300):
        loss = ((inputs @ w - targets) ** 2).mean()
        loss.backward()
        with torch.no_grad():
            w -= 0.5 * w.grad
        w.grad = None
    return round(loss.item(), 6)


def windows():
    data, total = np.arange(4000.0), 0.0
    for i in range(400):
        x, y = torch.from_numpy(data[i : i + 64]), torch.from_numpy(data[i + 1 : i + 65])
        total += ((x - y) * (x + 1)).sum().item()
    return round(total, 3)


def written():
    data = np.zeros(64)
    left, right = torch.from_numpy(data[:40]), torch.from_numpy(data[20:])
    for i in range(300):
        left += 1  # the right one sees it
        right.mul_(0.5)
        left[i % 40] = right.sum() / 50
    return round(left.sum().item(), 4), round(right.sum().item(), 4), round(float(data.sum()), 4)


def array_written():
    data, total = np.zeros(64), 0.0
    left, right = torch.from_numpy(data[:40]), torch.from_numpy(data[20:])
    for i in range(300):
        before = right * 2
        data[i % 64] += 1.5
        total += (before - left.mean() + right.sum()).sum().item()
    return round(total, 3)


for run in (shifted, windows, written, array_written):
    print(run.__name__, run())

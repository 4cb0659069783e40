# What a variable had in the iteration before goes once nothing can need it: exits before that find it, attributes and weak references keep it, others that hold it have it.
import weakref

import torch

torch.manual_seed(0)
base = torch.randn(4, 5)
batches = [torch.randn(4, 5) for _ in range(7)]
seen = []


def overwritten():
    x = base
    for k in range(160):
        x = base
        x = torch.relu(x + 0.01 * k)
        x = x * 2 if x.mean() > 0.3 else x - 1
    return x


def read_before():
    x = y = base
    for k in range(160):
        if k % 40 == 39:
            y = x - y
        x = batches[k % 7] * 0.5
        y = torch.tanh(y + x)
    return x + y


def kept():
    x, held = base, []
    for k in range(160):
        if k % 50 == 7:
            held.append(x)
        x = batches[k % 7] + k
    return sum(held) + x


def referenced():
    x, alive = base * 1, 0
    for k in range(160):
        alive += seen[-1]() is not None if seen else 0
        x = batches[k % 7] * 3
        seen.append(weakref.ref(x))
        x = x + 1
        seen.append(weakref.ref(x))
    return x + alive


def marked():
    x, marks = base * 1, []
    for k in range(160):
        x = batches[k % 7] * 3
        x.mark = Mark(marks, k)
        x = x + 1
    return x + len(marks)


class Mark:
    def __init__(self, marks, k):
        self.marks, self.k = marks, k

    def __del__(self):
        self.marks.append(self.k)


def raised():
    x, total = base, 0
    for k in range(160):
        try:
            x = batches[k % 7] * 2
            x = x.reshape(5, 4) if k != 120 else x.reshape(3, 3)
        except RuntimeError:
            total += float(x.sum())
    return x + total


def lists(names=("a", "b")):
    x, count = base, 0
    for k in range(160):
        parts = [x, base]
        parts.append(batches[k % 7])
        more = parts + [x * 2] + list(batches[:2])
        parts.append(base)
        count += len(more) + len(parts)
        x = torch.cat(more, 0)[:4] * 0.9
        words = list(names) + [str(k)]
        count += len(words)
    return x + count


def windows():
    table, x, total = torch.arange(60.0).reshape(12, 5), base, 0
    for k in range(160):
        total += float(table[k % 12].sum()) + float(x.sum())
        x = torch.sin(table[k % 8:k % 8 + 4]) * 2 + 1
    return x + total + table.sum()


for function in (windows, overwritten, read_before, kept, referenced, marked, raised, lists):
    print(function.__name__, f"{float(function().double().sum()):.6g}")
print(sum(ref() is not None for ref in seen))

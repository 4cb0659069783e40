# Generators chained as a data pipeline: read, window, normalise, batch; each is suspended between the loop's iterations.
# expect: compiled>=0.1, traces>=1
import torch


def read(samples):
    for index in range(samples):
        yield torch.sin(torch.arange(4.0) * 0.3 + index), index % 3


def augmented(source):
    for x, label in source:
        yield x, label
        if label == 0:
            yield x.flip(0), label


def normalised(source):
    for x, label in source:
        yield (x - x.mean()) / (x.std() + 1e-6), label


def batched(source, size):
    rows, labels = [], []
    for x, label in source:
        rows.append(x)
        labels.append(label)
        if len(rows) == size:
            yield torch.stack(rows), torch.tensor(labels)
            rows, labels = [], []
    if rows:
        yield torch.stack(rows), torch.tensor(labels)


weight = torch.zeros(4, 3)
correct = total = 0
for x, labels in batched(normalised(augmented(read(120))), 5):
    scores = x @ weight
    onehot = torch.nn.functional.one_hot(labels, 3).float()
    weight += 0.1 * x.t() @ (onehot - scores.softmax(-1))
    correct += (scores.argmax(-1) == labels).sum().item()
    total += len(labels)
print(total, correct, f"{weight.abs().sum().item():.4f}")

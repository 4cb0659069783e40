# Tensors that are iterated: by a loop, enumerate, zip, list, tuple, several times one with a graph.
# expect: compiled>=0.85
import torch

torch.manual_seed(0)
w = torch.randn(5, 4, requires_grad=True)
optimizer = torch.optim.SGD([w], lr=0.01)
for step in range(80):
    rows = torch.tanh(w * 2)
    total = torch.zeros(4)
    for row in rows:
        total = torch.logsumexp(torch.stack([total, row]), 0)
    score = torch.zeros(())
    for i, row in enumerate(rows):
        score = score + row[i % 4] * (i + 1)
    for i, (row, other) in enumerate(zip(rows, w)):
        score = score + (row * other).sum() * 0.1
    score = score + sum(row.sum() for row in list(rows)) + tuple(rows)[2].mean()
    loss = (total.sum() - score).tanh()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 10 == 0:
        print(step, f"{loss.item():.4f}")
try:
    list(torch.ones(()))
except TypeError as error:
    print(error)

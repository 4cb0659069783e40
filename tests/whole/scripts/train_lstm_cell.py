# Training through an LSTMCell's steps: its gates are written in place, each on columns of its own.
# expect: compiled>=0.7
import torch
import torch.nn as nn


def main():
    torch.manual_seed(0)
    cell, head = nn.LSTMCell(16, 24), nn.Linear(24, 2)
    optimizer = torch.optim.SGD([*cell.parameters(), *head.parameters()], lr=0.1, momentum=0.9)
    x, y = torch.randn(4, 5, 16), torch.randn(5, 2)
    for i in range(50):
        h = c = torch.zeros(5, 24)
        for step in x:
            h, c = cell(step, (h, c))
        loss = (head(h) - y).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if i % 10 == 9:
            print(f"{loss.item():.4f} {h.sum().item():.3f} {c.grad_fn is not None} {c.requires_grad}")


main()

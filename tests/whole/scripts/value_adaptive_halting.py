# Adaptive computation time: each input gets as many refinement steps as its halting probabilities ask for.
# expect: compiled>=0.85, traces>=1
import torch
from torch import nn


class Ponder(nn.Module):
    def __init__(self, width, limit):
        super().__init__()
        self.cell = nn.GRUCell(width, width)
        self.halt = nn.Linear(width, 1)
        self.limit = limit

    def forward(self, x):
        state, left, output = torch.zeros_like(x), torch.ones(x.size(0), 1), torch.zeros_like(x)
        for step in range(1, self.limit + 1):
            state = self.cell(x, state)
            p = torch.sigmoid(self.halt(state)) if step < self.limit else torch.ones(x.size(0), 1)
            output = output + left * p * state
            left = left * (1 - p)
            if left.max().item() < 0.25:
                break
        return output, step


torch.manual_seed(78)
net = Ponder(4, 6)
steps, total = [], 0.0
with torch.no_grad():
    for k in range(50):
        output, used = net(torch.randn(1, 4) * (1 + k % 4))
        steps.append(used)
        total += output.abs().sum().item()
print("".join(map(str, steps)), f"{total:.4f}")

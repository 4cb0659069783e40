# Truncated back-propagation through time: the hidden state is detached every few steps and carried on.
# expect: compiled>=0.1, traces>=1
import torch
from torch import nn

torch.manual_seed(165)
cell, head = nn.LSTMCell(3, 6), nn.Linear(6, 3)
optimizer = torch.optim.RMSprop([*cell.parameters(), *head.parameters()], lr=0.01)
stream = torch.stack([torch.sin(torch.arange(3.0) + 0.3 * t) for t in range(121)])
hidden, memory, loss, losses = torch.zeros(1, 6), torch.zeros(1, 6), 0.0, []
for t in range(120):
    hidden, memory = cell(stream[t:t + 1], (hidden, memory))
    loss = loss + nn.functional.mse_loss(head(hidden), stream[t + 1:t + 2])
    if t % 4 == 3:
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item() / 4)
        hidden, memory, loss = hidden.detach(), memory.detach(), 0.0
print(len(losses), [f"{v:.4f}" for v in losses[::6]])

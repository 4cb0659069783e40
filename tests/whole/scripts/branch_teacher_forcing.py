# A decoder feeds back its own output or the truth by a coin, whose bias changes with the epoch.
# expect: compiled>=0.1, traces>=1
import torch
from torch import nn

torch.manual_seed(102)
cell, out = nn.GRUCell(3, 8), nn.Linear(8, 3)
optimizer = torch.optim.Adam([*cell.parameters(), *out.parameters()], lr=0.01)
target = torch.stack([torch.sin(torch.arange(3.0) + 0.5 * t) for t in range(6)])
forced = 0
for epoch in range(30):
    optimizer.zero_grad()
    hidden, previous, loss = torch.zeros(1, 8), torch.zeros(1, 3), 0.0
    for t in range(6):
        hidden = cell(previous, hidden)
        prediction = out(hidden)
        loss = loss + nn.functional.mse_loss(prediction[0], target[t])
        if torch.rand(1).item() < 1 - epoch / 30:
            previous = target[t].unsqueeze(0)
            forced += 1
        else:
            previous = prediction.detach()
    loss.backward()
    optimizer.step()
print(forced, f"{loss.item():.5f}")

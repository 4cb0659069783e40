# while True with a patience counter: training ends when the validation loss has not improved for some rounds.
# expect: compiled>=0.55, traces>=1
import torch
from torch import nn

torch.manual_seed(86)
x = torch.randn(20, 6)
y = x[:, :1] + 0.5 * torch.randn(20, 1)
train, held = (x[:12], y[:12]), (x[12:], y[12:])
model = nn.Sequential(nn.Linear(6, 12), nn.Tanh(), nn.Linear(12, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.8)
best, waited, rounds = float("inf"), 0, 0
while True:
    rounds += 1
    optimizer.zero_grad()
    nn.functional.mse_loss(model(train[0]), train[1]).backward()
    optimizer.step()
    with torch.no_grad():
        loss = nn.functional.mse_loss(model(held[0]), held[1]).item()
    if loss < best - 1e-4:
        best, waited = loss, 0
    elif (waited := waited + 1) >= 15:
        break
    if rounds >= 120:
        break
print(rounds, waited, f"{best:.4f}")

# nn.LSTM and nn.GRU over a sequence, and an LSTMCell loop written out.
import torch
from torch import nn

torch.manual_seed(0)
lstm, gru, cell = nn.LSTM(3, 5, batch_first=True), nn.GRU(5, 4, batch_first=True), nn.LSTMCell(4, 3)
parameters = [*lstm.parameters(), *gru.parameters(), *cell.parameters()]
optimizer = torch.optim.Adam(parameters, lr=0.01)
x = torch.randn(2, 6, 3)
for i in range(20):
    optimizer.zero_grad()
    y = gru(lstm(x)[0])[0]
    h = c = torch.zeros(2, 3)
    outs = []
    for t in range(y.shape[1]):
        h, c = cell(y[:, t], (h, c))
        outs.append(h)
    loss = (torch.stack(outs, 1) - 0.5).pow(2).mean()
    loss.backward()
    optimizer.step()
    print(i, f"{loss.item():.6f}")

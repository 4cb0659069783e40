# pack_padded_sequence and pad_packed_sequence around an LSTM, with lengths that differ from batch to batch.
# expect: traces>=1
import torch
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

torch.manual_seed(127)
lstm, head = nn.LSTM(3, 4, batch_first=True), nn.Linear(4, 1)
optimizer = torch.optim.SGD([*lstm.parameters(), *head.parameters()], lr=0.1)
losses, widths = [], []
for step in range(30):
    lengths = torch.tensor([5 - step % 3, 3, 1 + step % 2])
    x = torch.randn(3, 5, 3)
    packed = pack_padded_sequence(x, lengths, batch_first=True)
    output, (hidden, _) = lstm(packed)
    states, back = pad_packed_sequence(output, batch_first=True)
    target = torch.stack([row[:n].sum() for row, n in zip(x, lengths.tolist())]).unsqueeze(1)
    loss = nn.functional.smooth_l1_loss(head(hidden[-1]), target)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
    widths.append(states.size(1))
print(back.tolist(), sorted(set(widths)), f"{sum(losses):.4f}")

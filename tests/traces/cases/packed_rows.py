# Packed sequences whose lengths have another sum each time: how many rows there are is told by data.
# expect: failed==0
import torch
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

LENGTHS = ([5, 3, 2], [5, 5, 1], [4, 4, 4], [5, 1, 1])
TABLE = torch.tensor(LENGTHS)


def reads(step):
    """No graph: the operation alone."""
    batch = pack_padded_sequence(torch.ones(3, 5, 2) * step, TABLE[step % 4].clone(), batch_first=True)
    return batch.data.sum().item(), batch.batch_sizes.tolist()


def trains(steps, cell):
    torch.manual_seed(1)
    layer, out = cell(2, 3, batch_first=True), nn.Linear(3, 1)
    optimizer = torch.optim.SGD([*layer.parameters(), *out.parameters()], lr=0.05)
    seen = []
    for step in range(steps):
        lengths = TABLE[step % 4 if step > 10 else 0] + 0
        batch = pack_padded_sequence(torch.randn(3, 5, 2), lengths, batch_first=True, enforce_sorted=step % 2 == 0)
        padded, sizes = pad_packed_sequence(layer(batch)[0], batch_first=True)
        loss = out(padded).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        seen.append((round(loss.item(), 5), sizes.tolist()))
    return seen


total = [reads(step) for step in range(40)]
print(total[-4:], sum(rows for rows, _ in total))
for cell in (nn.GRU, nn.LSTM):
    print(trains(30, cell)[-3:])

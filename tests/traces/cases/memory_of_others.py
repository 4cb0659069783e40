# Memory that no operation of torch's writes or reads: C++ code above the dispatcher fills tensors with numbers (at::tensor in ctc_loss, torch.FloatTensor),
# and reads the data of others (lengths, sizes of packed batches). What it puts there and finds there changes with the data.
# expect: traces>=3
import numpy as np
import torch
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence


def lengths_of_targets(steps, reduction):
    torch.manual_seed(2)
    seen = []
    weight = torch.randn(5, 5, requires_grad=True)
    for step in range(steps):
        log_probs = torch.log_softmax(torch.randn(8, 2, 5) @ weight, -1)
        targets = torch.randint(1, 5, (2, 3))
        loss = nn.functional.ctc_loss(log_probs, targets, torch.tensor([8, 8 - step % 2]), torch.tensor([1 + step % 3, 2]), reduction=reduction)
        loss.sum().backward()
        seen.append((loss.sum().item(), weight.grad.abs().sum().item()))
        weight.grad = None
    return seen


def same_lengths(steps):
    torch.manual_seed(3)
    log_probs, targets, seen = torch.log_softmax(torch.randn(10, 2, 5), -1), torch.tensor([[1, 2], [3, 4]]), []
    for step in range(steps):
        seen.append(nn.functional.ctc_loss(log_probs, targets, (10, 10), (2, 2)).item())
    return seen


def packed(steps, cell):
    torch.manual_seed(4)
    layer, seen = cell(3, 4, batch_first=True), []
    with torch.no_grad():
        for step in range(steps):
            lengths = [[4, 2, 2], [3, 3, 2], [4, 3, 1]][step % 3 if step > 12 else 0]  # eight steps in all, otherwise divided
            batch = pack_padded_sequence(torch.ones(3, 4, 3) * (1 + step), lengths, batch_first=True)
            out, _ = layer(batch)
            padded, sizes = pad_packed_sequence(out, batch_first=True, total_length=4)
            seen.append((padded.sum().item(), sizes.tolist()))
    return seen


def from_numpy(steps):
    np.random.seed(5)
    x, seen = torch.zeros(3), []
    for step in range(steps):
        x = x + torch.FloatTensor(np.random.random(3)) - torch.DoubleTensor([0.25 * step, 0.5, 1.0]).float() + torch.Tensor([1.0, 2.0, step])
        seen.append(x.sum().item())
    return seen


def split_at(steps):
    x, seen = torch.arange(12.0), []
    for step in range(steps):
        first, second, third = torch.tensor_split(x, torch.tensor([2 + step % 3, 7]))
        seen.append((first.sum().item(), second.sum().item(), third.sum().item()))
    return seen


def through_arrays(steps):
    seen = []
    for step in range(steps):
        x = torch.empty(4)
        array = x.numpy()
        array[:] = step
        array[step % 4] = 7
        seen.append((x * 2).tolist())
    return seen


for reduction in ("mean", "sum", "none"):
    print(reduction, [tuple(round(value, 3) for value in each) for each in lengths_of_targets(30, reduction)])
print(same_lengths(30))
for cell in (nn.LSTM, nn.GRU, nn.RNN):
    print(cell.__name__, [(round(total, 4), sizes) for total, sizes in packed(30, cell)])
print([round(value, 3) for value in from_numpy(30)])
print(split_at(30))
print(through_arrays(30))

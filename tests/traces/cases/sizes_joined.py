# A cache that grows by one row each step, as a decoder's does: how long what `cat` gives is follows from its operands, so it is a kernel of the trace,
# and so is what follows. Also several that grow by different numbers, one behind itself, and a length that another tensor brings along.
# expect: compiled>=0.6, open_sizes>=1
import torch


def attend(q, keys, values, mask):
    scores = (keys * q[:, None, :]).sum(-1) + mask
    return (torch.softmax(scores, -1)[:, :, None] * values).sum(1)


def step(x, keys, values, other, mask):
    keys = torch.cat([keys, torch.tanh(x)[:, None, :]], dim=1)
    values = torch.cat([values, (x * 2)[:, None, :]], dim=-2)
    y = attend(x, keys, values, mask)
    twice = torch.cat([keys, keys], dim=1).amax(1)
    apart = torch.cat([other, values[:, :3], keys]) if other.shape[1] == keys.shape[1] else torch.cat([values, other, values[:, :2]], dim=1)
    return torch.sigmoid(y + twice * 0.25 + apart.mean(1)[:2]), keys, values


def run(length, steps):
    torch.manual_seed(length)
    x = torch.randn(2, 8)
    keys, values = torch.randn(2, length, 8), torch.randn(2, length, 8)
    for i in range(steps):
        other = torch.randn(2, 4 + (i * i) % 7, 8)
        mask = torch.zeros(2, keys.shape[1] + 1)
        x, keys, values = step(x, keys, values, other, mask)
    return x.sum().item(), keys.shape, values[:, -1].sum().item()


for length in (4, 9, 40):
    print(run(length, 70))

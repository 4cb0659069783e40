# Sizes that data decides: indexes by masks, nonzero, masked_select, unique, repeat_interleave; what follows from them, and what Python computes
# and decides from them. Now and then nothing, one, or everything is selected.
# expect: compiled>=0.7, open_sizes>=1
# expect-abort: none
import torch
import torch.nn.functional as F


def main():
    torch.manual_seed(0)
    w = torch.rand(8, 6)
    rows = torch.rand(40, 8)
    total = 0.0
    counts = []
    for i in range(400):
        x = rows + torch.rand(40, 8)
        level = (0.2 + 0.6 * ((i * 7919) % 97) / 97) if i % 50 else (5.0 if i % 100 else -1.0)
        mask = x[:, 0] > level * 2
        y = x[mask]
        z = torch.relu(y @ w + 1) * 2
        places = torch.nonzero(mask)
        selected = torch.masked_select(x, x > level * 1.5)
        total += z.sum().item() + places.float().sum().item() + selected.sum().item()
        if y.shape[0] > 20:
            total += 1
        flat = z.reshape(-1)
        total += flat.shape[0] + F.softmax(z, dim=1).sum().item() + z[:, :3].transpose(0, 1).contiguous().sum().item()
        counts.append(y.size(0) * 2 + len(selected))
        kinds, times = torch.unique((x * 3).long(), return_counts=True)
        total += kinds.sum().item() + (times * times).sum().item() + times.repeat_interleave(times).sum().item()
    print(f"{total:.1f}", sum(counts), counts[:60])


main()

# Tensors whose sizes data decides leave the trace: they are kept in lists, seen by Python at branches, viewed, written in place, carried to the
# next iteration.
# expect: compiled>=0.45, open_sizes>=1
import torch


def main():
    torch.manual_seed(0)
    kept, last = [], torch.zeros(3)
    total = 0.0
    for i in range(300):
        x = torch.rand(50, 4)
        chosen = x[x[:, 1] > 0.4 + 0.1 * (i % 3)]
        chosen.mul_(2)
        chosen[:, 0] = 1.0
        first, rest = chosen[0], chosen[1:]
        rest += first
        view = rest.t()
        total += view.sum().item()
        if i % 5 == 0:
            kept.append(view)
        if chosen.numel() > 100:
            total += chosen.max().item()
        last = torch.cat([last, chosen[:, 2]])[-40:]
        if i % 7 == 0:
            last = last[last > 0.5]
    for tensor in kept:
        tensor.add_(1)
    print(f"{total:.2f}", len(kept), [tuple(k.shape) for k in kept[::9]], f"{sum(k.sum().item() for k in kept):.2f}", last.shape, f"{last.sum().item():.3f}",
          kept[0]._base is not None, kept[0].stride())


main()

# A residual call makes a view of memory that the trace itself has made; later the memory is written through either.
# expect: compiled>=0.4, traces>=1
import torch


def swapped(t):
    return t.transpose(0, 1)


def main():
    torch.manual_seed(0)
    x = torch.randn(8, 8)
    total = 0.0
    for i in range(80):
        y = torch.relu(x * 0.5)
        z = list(map(swapped, [y]))[0]
        total += torch.mm(y, z).sum().item()
    for i in range(80):
        y = torch.relu(x * 0.5)
        z = list(map(swapped, [y]))[0]
        y.add_(1.0)
        total += (z * 2).sum().item()
        z.mul_(0.5)
        total += torch.mm(y, x).sum().item()
    print(f"{total:.3f}")


main()

# Views with changing indices of memory that only the trace has: it must not be used for something else while they are read.
# expect: compiled>=0.9, traces>=1
# expect-abort: none
import torch


def main():
    torch.manual_seed(0)
    x, w = torch.randn(16, 64), torch.randn(64, 64)
    total = 0.0
    for i in range(100):
        y = torch.mm(x, w)
        first, second = y[i % 16], y[(i * 7) % 16]
        z = torch.mm(x, w * 0.5)
        z = torch.mm(z, w)
        total += (torch.relu(z) * first - second * z).mean().item()
    print(f"{total:.1f}")


main()

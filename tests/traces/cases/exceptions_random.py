# Random numbers drawn in an exception's handler and in a generator that any() consumes, before something that may leave the trace: each is drawn once.
# expect: traces>=1
import torch


def main():
    torch.manual_seed(3)
    x = torch.zeros(3)
    count = 0
    for i in range(60):
        try:
            if i >= 0:
                raise ValueError("always")
        except ValueError:
            x = x * 0.5 + torch.rand(3)
            if x.sum().item() > 1.6 + 0.01 * (i % 7):
                count += 1
        if any(torch.rand(2).sum().item() > limit for limit in (1.4, 1.0)):
            count += 100
    print(count, x.tolist(), torch.rand(2).tolist())


main()

# Tensors where torch takes numbers: bounds, ends of slices, alpha. What they hold is read first, and then given like any number; one that changes
# from run to run is followed where it cannot change a shape, and leaves where it can.
# expect: compiled>=0.8, traces>=1
# expect-abort: none
import torch


def main():
    torch.manual_seed(0)
    x = torch.randn(4, 16)
    span, steps = torch.tensor(3), torch.arange(60)
    half = torch.tensor(0.5)
    total, sizes = 0.0, 0
    for i in range(60):
        y = torch.clamp(x * 4 + span, 0, span * 2 - 1)
        y = torch.add(y, x, alpha=half) + y[:, 8 - span : 8 + span].sum()
        z = torch.add(x, y, alpha=steps[i])
        z = z.clamp(min=-steps[i] * 0.25)
        part = z[:, : 4 + (steps[i] // 30)]
        sizes += part.shape[1]
        total += part.sum().item()
        x = torch.tanh(x + y * 0.1)
    print(f"{total:.2f} {sizes}")


main()

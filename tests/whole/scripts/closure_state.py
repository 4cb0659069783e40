# Closures with nonlocal state: a running normaliser and a learning rate warm-up that share a factory.
# expect: compiled>=0.8, traces>=1
import torch


def make_normaliser(momentum):
    mean = None
    count = 0

    def normalise(x):
        nonlocal mean, count
        count += 1
        batch = x.mean(0)
        mean = batch if mean is None else mean + (1 - momentum) * (batch - mean)
        return x - mean

    def statistics():
        return count, mean

    return normalise, statistics


def make_warmup(steps, peak):
    step = 0

    def rate():
        nonlocal step
        step += 1
        return peak * min(1.0, step / steps)
    return rate


torch.manual_seed(19)
slow, slow_statistics = make_normaliser(0.9)
fast, fast_statistics = make_normaliser(0.5)
rate = make_warmup(10, 0.3)
w = torch.zeros(4)
for step in range(50):
    x = torch.randn(8, 4) + step * 0.1
    w = w + rate() * (slow(x) - fast(x)).mean(0)
print(slow_statistics()[0], [f"{v:.4f}" for v in (slow_statistics()[1] - fast_statistics()[1]).tolist()])
print([f"{v:.4f}" for v in w.tolist()], [cell.cell_contents for cell in rate.__closure__])

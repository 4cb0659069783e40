# A function that is called again, outside of a loop, begins its lists anew: its loop's trace is the same one.
# expect: compiled>=0.9, recordings==1
import torch

torch.manual_seed(0)
w = torch.randn(16, 16) / 4


def fit(x, count):
    losses, seen = [], []
    while len(losses) < count:
        x = torch.tanh(x @ w) + 0.5 * x
        losses.append(round(x.abs().mean().item(), 4))
        if len(losses) % 50 == 0:
            seen.extend(losses[-2:])
    return losses, seen


losses, seen = fit(torch.ones(16, 16), 300)
print(losses[:3], losses[-1], seen)
losses, seen = fit(torch.full((16, 16), 0.5), 200)
print(losses[:3], losses[-1], seen)
losses, seen = fit(torch.full((16, 16), -0.5), 200)
print(losses[:3], losses[-1], len(losses), seen)

# The same tensor, or overlapping views of one, come in as different arguments of a function, at times only.
# expect: compiled>=0.85, traces>=1
import torch


def accumulate(a, b, out):
    out.copy_(a)
    out.add_(b)
    a.mul_(0.5)
    return (a + b + out).sum()


torch.manual_seed(131)
buffer = torch.randn(10)
other = torch.randn(5)
totals = []
for step in range(80):
    a, b = buffer[:5], buffer[5:]
    out = torch.zeros(5)
    if step % 8 == 5:
        out = b
    elif step % 8 == 7:
        b = a
    elif step > 60:
        b = buffer[2:7]
    totals.append(accumulate(a, b, out).item())
    buffer.add_(0.1 * other.repeat(2)).clamp_(-2, 2)
print([f"{t:.4f}" for t in totals[5::8]], f"{buffer.sum().item():.4f}")

# In-place operations on tensors of a graph: allowed ones change gradients, forbidden ones raise in backward.
import torch

torch.manual_seed(136)
w = torch.randn(4, requires_grad=True)
x = torch.randn(4)
errors, sums = [], []
for step in range(50):
    y = w * x
    z = y.exp()
    y.add_(1.0)
    parts = z.split(2)
    total = y.sum() + parts[0].pow(2).sum()
    if step % 12 == 7:
        z.mul_(2.0)
    try:
        total.backward()
    except RuntimeError as error:
        errors.append(str(error)[:72])
        w.grad = None
        continue
    with torch.no_grad():
        w.sub_(0.05 * w.grad)
        sums.append(w.grad.sum().item())
    w.grad.zero_()
print(len(errors), errors[0] if errors else None, [f"{s:.4f}" for s in sums[::10]])

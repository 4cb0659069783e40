# Results are appended and compared with earlier ones: torch.equal, allclose, ==, `is`, sorting of tensors as keys.
# expect: compiled>=0.45, traces>=1
import torch

torch.manual_seed(77)
history, same, close, order = [], 0, 0, []
x = torch.tensor([0.3, 0.6, 0.9])
for step in range(60):
    x = 3.2 * x * (1 - x)
    rounded = (x * 100).round()
    same += sum(torch.equal(rounded, old) for old in history[-4:])
    close += any(torch.allclose(x, old / 100, atol=0.02) for old in history[-2:])
    if history and (rounded == history[-1]).all():
        order.append(step)
    if len(history) > 1 and history[-1] is history[-2]:
        order.append("never")
    history.append(rounded)
ranked = sorted(history[:10], key=lambda t: t[0].item())
print(same, close, len(order), [int(t[0]) for t in ranked], [f"{v:.4f}" for v in x.tolist()])

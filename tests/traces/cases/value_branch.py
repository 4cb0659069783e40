# A branch on a value computed in the iteration: both sides are taken, in no fixed order.
# expect: compiled>=0.84
import torch

torch.manual_seed(0)
w = torch.randn(8, 8) * 0.4
x = torch.randn(8)
taken = []
with torch.no_grad():
    for i in range(80):
        x = torch.tanh(w @ x + 0.3 * torch.sin(torch.arange(8.0) + i))
        m = x.mean().item()
        if m > 0.05:
            x = x * 1.5
            taken.append("a")
        elif x[0] < 0 and bool((x > 0.5).any()):
            x = x - 0.25
            taken.append("b")
        else:
            taken.append("c")
print("".join(taken), f"{x.sum().item():.5f}")

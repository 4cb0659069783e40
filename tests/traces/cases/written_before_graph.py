# A tensor that is written through a view before a graph reads it is as it is in memory for exits too: no reason to give the trace up.
# expect: compiled>=0.8, traces>=1
import torch

torch.manual_seed(0)
w = torch.randn(5, 3, requires_grad=True)
total = 0.0
for i in range(80):
    scale = torch.ones(5, 3)
    scale[1:3] = 0.5
    y = torch.tanh(w * scale)
    if i % 7 == 6:
        total += y.detach().sum().item()
    y.sum().backward()
    total += w.grad.sum().item()
    w.grad = None
print(f"{total:.3f}")

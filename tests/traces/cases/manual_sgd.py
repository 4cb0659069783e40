# A hand-written optimizer under no_grad, with a learning rate that decays in Python.
# expect: compiled>=0.87
import torch

torch.manual_seed(0)
w = torch.randn(5, 3, requires_grad=True)
b = torch.zeros(3, requires_grad=True)
x, y = torch.randn(20, 5), torch.randn(20, 3)
lr = 0.1
for i in range(60):
    loss = ((x @ w + b - y) ** 2).mean()
    loss.backward()
    with torch.no_grad():
        for p in (w, b):
            p -= lr * p.grad
            p.grad.zero_()
    lr *= 0.97
print(f"{loss.item():.6f} {lr:.8f}", [f"{v:.6f}" for v in b.tolist()], w._version)

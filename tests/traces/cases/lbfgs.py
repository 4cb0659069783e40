# An optimizer that calls the closure several times a step.
import torch

torch.manual_seed(0)
w = torch.zeros(3, requires_grad=True)
x = torch.randn(20, 3)
y = (x @ torch.tensor([1.0, -2.0, 0.5])).sigmoid()
optimizer = torch.optim.LBFGS([w], lr=0.5, max_iter=5)
calls = 0


def closure():
    global calls
    calls += 1
    optimizer.zero_grad()
    loss = torch.nn.functional.binary_cross_entropy_with_logits(x @ w, y)
    loss.backward()
    return loss


for i in range(6):
    loss = optimizer.step(closure)
    print(i, f"{loss.item():.5f}")
print(calls > 6, [f"{v:.2f}" for v in w.tolist()])

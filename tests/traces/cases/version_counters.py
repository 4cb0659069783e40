# Version counters advance as in eager: a tensor saved for backward and then changed is an error.
import torch

w = torch.ones(3, requires_grad=True)
buffer = torch.zeros(3)
for i in range(40):
    buffer.add_(0.1)
    y = (w * buffer).sum()
    if i == 30:
        buffer.mul_(2)
    try:
        y.backward()
    except RuntimeError as error:
        print(i, "inplace" in str(error), "version" in str(error))
    buffer.detach().mul_(0.99)
print(buffer._version, [f"{v:.5f}" for v in w.grad.tolist()])

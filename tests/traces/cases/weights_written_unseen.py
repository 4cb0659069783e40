# A convolution's weights that are written without a word in their version counter: through .data, through NumPy, by a fused optimizer.
# expect: traces>=3
import numpy as np
import torch
import torch.nn.functional as F

torch.manual_seed(0)


def by_data(w):
    w.data.mul_(0.9)


def by_numpy(w):
    np.multiply(w.detach().numpy(), np.float32(0.9), out=w.detach().numpy())


def by_optimizer(w):
    w.grad = torch.ones_like(w)
    torch.optim.SGD([w], lr=0.01, fused=True).step()


for write in (by_data, by_numpy, by_optimizer):
    w = torch.nn.Parameter(torch.randn(8, 8, 3, 3) * 0.1)
    x = torch.randn(1, 8, 5, 5)
    total = 0.0
    for i in range(120):
        with torch.no_grad():
            y = F.conv2d(x, w)
        if i % 10 == 9:
            write(w)
        total += y.abs().sum().item()
    print(write.__name__, f"{total:.2f}")

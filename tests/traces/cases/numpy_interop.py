# numpy arrays that share memory with tensors, read and written in the loop.
import numpy as np
import torch

array = np.zeros(5, dtype=np.float32)
shared = torch.from_numpy(array)
out = []
x = torch.ones(5)
for i in range(40):
    array[i % 5] += 0.5
    x = x * 0.9 + shared
    shared.mul_(0.99)
    out.append(float(x.numpy().sum()) + float(array.max()))
print(" ".join(f"{v:.5f}" for v in out[::4]), array.dtype, x.dtype)

# A NumPy array and tensors share memory: NumPy writes, torch reads in the same iteration, and back; dtypes and views too.
# expect: compiled>=0.4, traces>=1
import numpy as np
import torch

array = np.linspace(0, 1, 12, dtype=np.float32).reshape(3, 4)
tensor = torch.from_numpy(array)
column = array[:, 1]
sums = []
for step in range(60):
    column += 0.01 * step
    tensor.mul_(0.9)
    row = tensor[2].numpy()
    row[0] = np.tanh(array[0].sum())
    mixed = torch.as_tensor(array.T)
    mixed[3] = torch.sigmoid(mixed[3])
    total = tensor.double().numpy().sum() + np.float64(tensor.max())
    sums.append(float(total))
    if step == 30:
        array[:] = np.ones((3, 4)) * 0.5
print([f"{s:.4f}" for s in sums[::10]], array.dtype, np.shares_memory(row, array), mixed.shape, f"{array.sum():.4f}")

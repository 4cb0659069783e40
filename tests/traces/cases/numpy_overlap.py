# Tensors with storages of their own on the memory of one NumPy array: what is written through the one is read through the other.
# expect: traces>=0
import numpy as np
import torch

array = np.linspace(0, 1, 8, dtype=np.float32)
tensor = torch.from_numpy(array)
apart = torch.from_numpy(array[4:])
for step in range(40):
    other = torch.as_tensor(array[:]) if step < 20 else torch.from_numpy(np.zeros(8, dtype=np.float32))
    other[3] = float(step)
    other[5:].add_(0.25)
    array[0] = step * 0.5
    y = tensor * 2 + apart.sum()
    if step % 5 == 4:
        print(step, [round(v, 3) for v in y.tolist()])
mine = torch.zeros(6)
shared = torch.from_numpy(mine.numpy())
for step in range(30):
    shared[step % 6] += step
    mine.mul_(0.9)
print([round(v, 4) for v in mine.tolist()], bool((mine == shared).all()))

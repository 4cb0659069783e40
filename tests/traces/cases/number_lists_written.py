# Writes by lists of indices that are other ones each time, and torch.as_tensor of such numbers.
# expect: traces>=1, compiled>=0.5
import torch

written = torch.zeros(40, 5)
for i in range(200):
    written[[i % 40, (7 * i) % 40]] += 0.5
    written[:, [i % 5]] = torch.as_tensor([i, 1.5]).sum()
print(written.sum().item())

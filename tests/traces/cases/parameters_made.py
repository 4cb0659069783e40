# Parameters and other objects of classes of their own made in a hot loop are what they are in eager.
# expect: traces>=1
import torch
from torch import nn

torch.manual_seed(0)
kinds = []
for i in range(30):
    x = torch.full((3,), float(i)) * 2
    p = nn.Parameter(x)
    q = nn.Parameter(x + 1, requires_grad=False)
    b = nn.Buffer(x - 1)
    (p * p).sum().backward()
    kinds.append((type(p).__name__, isinstance(p, nn.Parameter), p.requires_grad, p.is_leaf, type(q).__name__, q.requires_grad,
                  type(b).__name__, round(p.grad.sum().item(), 2), p.data_ptr() == x.data_ptr()))
print(kinds[3], kinds[29], len(set(k[:7] for k in kinds)))

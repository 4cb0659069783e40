# torch.set_num_threads changes between the phases of a loop; results and what get_num_threads says are python's.
# expect: compiled>=0.85, traces>=1
import torch
from torch import nn

torch.manual_seed(139)
before = torch.get_num_threads()
layer = nn.Linear(32, 32)
x = torch.randn(16, 32)
seen, sums = [], []
with torch.no_grad():
    for step in range(60):
        if step % 20 == 0:
            torch.set_num_threads((1, 2, 1)[step // 20])
            seen.append(torch.get_num_threads())
        x = torch.tanh(layer(x)) + 0.1 * x
        sums.append(x.sum().item())
torch.set_num_threads(before)
print(seen, [f"{s:.3f}" for s in sums[::12]])

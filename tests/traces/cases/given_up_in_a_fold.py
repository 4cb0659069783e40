# What is asked of a tensor that no trace can hold, a sparse gradient, ends the recording and not the script.
# expect: traces>=1
import torch
from torch import nn

torch.manual_seed(9)
left, right, scale = nn.Embedding(50, 4, sparse=True), nn.Embedding(50, 4, sparse=True), nn.Parameter(torch.ones(1))
sparse, dense = torch.optim.SparseAdam([left.weight, right.weight], lr=0.02), torch.optim.Adam([scale], lr=0.01)
losses, sizes = [], []
for step in range(50):
    a, b = torch.randint(50, (8 + step % 3,)), torch.randint(50, (8 + step % 3,))
    loss = -nn.functional.logsigmoid(scale * (left(a) * right(b)).sum(-1)).mean()
    sparse.zero_grad()
    dense.zero_grad()
    loss.backward()
    grad = left.weight.grad
    sizes.append((grad.size(), grad.dim(), len(grad), grad.is_sparse, grad.coalesce().indices().numel()))
    sparse.step()
    dense.step()
    losses.append(loss.item())
print(sizes[-3:], [f"{value:.4f}" for value in losses[::5]])

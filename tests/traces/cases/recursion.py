# A recursive function over a tree of tensors, called in a loop.
import torch


def fold(tree, depth=0):
    if isinstance(tree, torch.Tensor):
        return tree * (1 + 0.1 * depth)
    left, right = tree
    return torch.tanh(fold(left, depth + 1) + fold(right, depth + 1))


tree = ((torch.ones(2), torch.zeros(2)), (torch.full((2,), 0.5), (torch.ones(2), torch.ones(2))))
x = torch.zeros(2)
for i in range(40):
    x = fold((x, tree))
print([f"{v:.6f}" for v in x.tolist()])

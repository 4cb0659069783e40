# Operators defined by torch.library.Library while the program runs.
import torch

library = torch.library.Library("dynvm_late", "FRAGMENT")
total = torch.zeros(2)
for k in range(4):
    library.define(f"op{k}(Tensor x, int n) -> Tensor")
    library.impl(f"op{k}", lambda x, n, k=k: x * n + k, "CompositeExplicitAutograd")
    op = getattr(torch.ops.dynvm_late, f"op{k}")
    for i in range(40):
        total = total + op(torch.ones(2), i)
print(total)

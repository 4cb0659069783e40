# set_, resize_ and share of storages: a double buffer whose tensors trade memory, and one that grows.
# expect: compiled>=0.5, traces>=1
import torch

torch.manual_seed(134)
front, back = torch.randn(4), torch.zeros(4)
view = torch.empty(0)
sums = []
for step in range(50):
    back.copy_(front).mul_(0.9).add_(0.1 * step % 0.7)
    if step % 5 == 4:
        keep = torch.empty(0).set_(front)
        front.set_(back)
        back.set_(keep)
    else:
        front, back = back, front
    view.set_(front.untyped_storage(), 1, (2,), (1,))
    view.neg_()
    sums.append(front.sum().item())
    if step % 20 == 19:
        front.resize_(5)
        front[4] = 0.0
        back.resize_(5).zero_()
print(tuple(front.shape), [f"{s:.4f}" for s in sums[::10]], view.storage_offset(), view.data_ptr() == front.data_ptr() + 4)

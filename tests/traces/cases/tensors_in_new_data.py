# Numbers of tensors among the data of a new tensor: C++ code reads them where no operation is recorded, and they are other ones each time.
import torch
import torch.nn.functional as F


def of_lists(n):
    out = []
    for x in torch.arange(float(n)) * 0.5:
        out.append(torch.tensor([x]) * 2)
    return torch.stack(out).sum().item()


def beside_numbers(n):
    out = []
    for k, x in enumerate(torch.arange(float(n)) * 0.25):
        out.append(torch.tensor([[k, x], [x, 1.0]]) + 1)
    return torch.stack(out).sum(0).tolist()


def new_tensors(n):
    like, total = torch.zeros(3, dtype=torch.float64), 0.0
    for x in torch.linspace(0, 1, n):
        total += (like.new_tensor([x, 2 * x, 3.0]) * 4).sum().item()
        total += (like.new_tensor([1.0, 2.0, 3.0]) * 4).sum().item()
    return round(total, 4)


def other_makers(n):
    out = []
    for x in torch.arange(n) * 3:
        out.append(torch.as_tensor([x, x + 1]).sum() + torch.LongTensor([x]).sum() + torch.asarray([x]).sum())
    for x in torch.arange(float(n)):
        out.append((torch.FloatTensor([x, 1.0]) * 2).sum().long())
        out.append(torch.sparse_coo_tensor([[0, 1]], [x, 1.0], (3,)).to_dense().sum().long())
    return torch.stack(out).sum().item()


def losses(n):
    """A critic's loss: each return is a number of a tensor."""
    values = [torch.full((1,), 0.1 * k, requires_grad=True) for k in range(n)]
    returns = torch.arange(float(n)) * 0.5
    out = []
    for value, r in zip(values, returns):
        out.append(F.smooth_l1_loss(value, torch.tensor([r])))
    total = torch.stack(out).sum()
    total.backward()
    return round(total.item(), 4), round(sum(value.grad.item() for value in values), 4)


for part in (of_lists, beside_numbers, new_tensors, other_makers, losses):
    print(part.__name__, part(60))

# A row that a loop has taken by a number, read by a graph that an exit rebuilds: it is a view of its table still, not the copy that the graph reads.
# expect: traces>=1
import torch

torch.manual_seed(0)
table = torch.randn(60, 4, 3)
w = torch.randn(3, 3, requires_grad=True)


def sequence(steps):
    h = torch.zeros(4, 3)
    for t in range(steps):
        x = table[t]
        part = x[1:]
        h = torch.tanh(x @ w + h) + part.sum()
    look = x._base is table, x.storage_offset(), part._base is table, x._version == table._version
    return h.mean(), look, x


for steps in (7, 20, 33, 20, 41, 12, 60, 25) * 3:
    loss, look, x = sequence(steps)
    (grad,) = torch.autograd.grad(loss, w)
    x.add_(0.01)
    print(steps, look, f"{loss.item():.4f} {grad.sum().item():.4f} {table.sum().item():.3f}")

# A tensor that a graph has saved is written: backward() says so.
for steps in (9, 30, 30, 45, 30):
    loss, look, x = sequence(steps)
    x.zero_()
    try:
        torch.autograd.grad(loss, w)
        print("fine")
    except RuntimeError as error:
        print(str(error)[:80])

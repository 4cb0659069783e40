# A leaf that is a view of a tensor from outside, as the batch of a gradient penalty is: an exit before the gradient is asked for keeps it the script's own.
# expect: traces>=1
import torch

torch.manual_seed(0)
w = torch.randn(6, 4, requires_grad=True)
data = torch.randn(20, 4, 6)


def run(name, leaf_of):
    batches, grads = iter(data), []
    for i in range(12):
        x = leaf_of(next(batches))
        y = torch.relu(x @ w)
        loss = y.sum() * (i % 5 - 2)
        if loss.item() > 0:
            grads.append(i)
        g, = torch.autograd.grad(loss, x, create_graph=True)
        penalty = g.square().sum()
        if penalty.item() > 1000:
            grads.append("large")
        w.grad = None
        penalty.backward()
        grads.append(round(w.grad.sum().item() + g.sum().item(), 2))
        if i % 4 == 3:
            grads.append((x.is_leaf, x.grad is None, x._version))
    print(name, grads)


run("detached", lambda x: x.detach().requires_grad_())
run("a part", lambda x: x[1:3].detach().requires_grad_())
run("turned", lambda x: x.flip(0).detach().requires_grad_())
run("shared", lambda x: x.data.requires_grad_())
run("another shape", lambda x: x.detach().view(2, 2, 6).requires_grad_())

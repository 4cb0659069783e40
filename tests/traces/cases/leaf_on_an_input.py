# Leaves that lie on memory of an input (x.detach().requires_grad_()), looked at by exits between a forward and its backward pass: graphs end in the very tensor that the script has.
# expect: traces>=1
import torch
import torch.nn.functional as F

torch.manual_seed(0)
linear = torch.nn.Linear(6, 6)
inputs, targets = torch.randn(5, 6), torch.randn(5, 6)


def of_the_leaf(leaf, early):
    """The loss's variable is older than the leaf's: an exit makes it first."""
    losses, loss = [], None
    for i in range(14):
        x = leaf()
        loss = F.l1_loss(x, targets)
        if i in early:
            losses.append("early")
        g, = torch.autograd.grad(x, x, x, retain_graph=True)
        loss.backward()
        losses.append((round(loss.item(), 4), round(g.sum().item(), 3), round(x.grad.abs().sum().item(), 4), x.is_leaf))
    return losses


def penalty(early):
    losses = []
    for i in range(14):
        x = inputs.detach().requires_grad_()
        y = x + linear(x)
        loss = F.mse_loss(y, targets)
        if i in early:
            losses.append("early")
        g, = torch.autograd.grad(y, x, torch.ones_like(y), create_graph=True)
        linear.zero_grad()
        (loss + g.pow(2).sum()).backward()
        losses.append((round(loss.item(), 4), round(linear.weight.grad.sum().item(), 3), round(x.grad.sum().item(), 3)))
    return losses


def steps_to_the_input(early):
    """An adversary's: the leaf is written, beside the graph, and begins again from itself."""
    x, shown = inputs.clone(), []
    for i in range(14):
        x = x.detach().requires_grad_()
        loss = F.mse_loss(linear(x), targets)
        if i in early:
            shown.append("early")
        g, = torch.autograd.grad(loss, x)
        with torch.no_grad():
            x = inputs + (x + 0.1 * g.sign() - inputs).clamp(-0.3, 0.3)
        shown.append(round(loss.item(), 4))
    return shown


for early in ((), (9,), (7, 11, 12)):
    print(of_the_leaf(lambda: inputs.detach().requires_grad_(), early))
    print(of_the_leaf(lambda: inputs.t().detach().t().requires_grad_(), early))
    print(of_the_leaf(lambda: inputs.flip(0).detach().requires_grad_(), early))
    print(of_the_leaf(lambda: inputs[:5].data.requires_grad_(), early))
    print(penalty(early))
    print(steps_to_the_input(early))

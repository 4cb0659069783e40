# backward() that keeps the graph, an exit behind it, and another backward() through the same graph; values and graphs that are looked at behind an update.
# expect: traces>=1
import torch

torch.manual_seed(0)
x = torch.randn(6, 4)


def penalty(model, params, opt, i):
    y = model(x)
    loss = y.square().mean()
    grads = torch.autograd.grad(loss, params, create_graph=True)
    norm = sum(g.square().sum() for g in grads)
    if i % 4 == 3:
        print("norm", f"{norm.item():.5f}")
    (loss + 0.1 * norm).backward()
    opt.step()
    return loss


def retained(model, params, opt, i):
    y = model(x).tanh()
    y.sum().backward(retain_graph=True)
    if i % 3 == 2:
        print("first", f"{params[0].grad.sum().item():.5f}")
    y.square().sum().backward()
    opt.step()
    return y.mean()


def kept_in_a_variable(model, params, opt, i):
    y = model(x).tanh()
    keep = i % 5 != 4
    y.sum().backward(retain_graph=keep)
    try:
        y.sum().backward()
    except RuntimeError as error:
        print(i, str(error)[:60])
    opt.step()
    return y.mean()


def behind_the_update(model, params, opt, i):
    y = model(x).tanh()
    loss = y.exp().sum()
    torch.autograd.backward(y, y.detach())
    opt.step()
    if i % 4 == 2:
        print("behind", [f"{p.sum().item():.5f}" for p in params])
    return loss


def retained_behind_the_update(model, params, opt, i):
    y = model(x).tanh()
    loss = y.exp().sum()
    loss.backward(retain_graph=True)
    opt.step()
    if i % 4 == 2:
        try:
            loss.backward()
        except RuntimeError as error:
            print(i, str(error)[:100])
    return loss


for fn in (penalty, retained, kept_in_a_variable, behind_the_update, retained_behind_the_update):
    torch.manual_seed(1)
    model = torch.nn.Sequential(torch.nn.Linear(4, 3), torch.nn.Sigmoid(), torch.nn.Linear(3, 2))
    params = list(model.parameters())
    opt = torch.optim.SGD(params, lr=0.01, momentum=0.9)
    for i in range(20):
        opt.zero_grad()
        value = fn(model, params, opt, i)
        if i > 12:
            print(fn.__name__, i, f"{value.item():.5f}")

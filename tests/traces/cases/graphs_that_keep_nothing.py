# Graphs of sums and views keep no tensor for their gradient: a backward() takes nothing from them, and they can be run again. One that keeps something cannot.
# expect: traces>=6
import torch

torch.manual_seed(0)


def sums(w, i):
    return (w - i).sum()


def views(w, i):
    return torch.cat([w.view(2, 2).t()[0], w[2:] + i]).mean()


def given(w, i):
    return torch.nn.functional.linear(torch.ones(2, 3), torch.ones(4, 3), w).sum()


def partly(w, i):
    return (w * w).sum() + 1


def behind(w, i):
    return (w.exp() - 1).sum()


for loss_of in (sums, views, given, partly, behind):
    w, seen, loss = torch.nn.Parameter(torch.randn(4)), [], None
    for i in range(60):
        if loss is not None and i % 7 == 0:
            try:
                loss.backward()
                seen.append(f"again {w.grad.sum().item():.3f}")
            except RuntimeError as error:
                seen.append(str(error)[:40])
        w.grad = None
        loss = loss_of(w, i)
        loss.backward()
        if i % 11 == 0:
            seen.append(type(loss.grad_fn).__name__)
    print(loss_of.__name__, seen, w.grad)

# Twice in each iteration, where nothing says that the graph stays.
w, totals = torch.nn.Parameter(torch.randn(4)), []
for i in range(60):
    w.grad = None
    total = (w.view(2, 2) - i).sum()
    total.backward()
    total.backward()
    totals.append(w.grad.sum().item())
print(totals[-1], sum(totals))

# Behind a part that keeps something.
w, seen, shifted = torch.nn.Parameter(torch.randn(4)), [], None
for i in range(60):
    if shifted is not None and i % 7 == 0:
        shifted.sum().backward()
        seen.append(w.grad.sum().item())
    w.grad = None
    shifted = w - i
    (shifted * shifted).sum().backward()
print(seen)

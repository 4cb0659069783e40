# Tensors from before a trace that it writes in place, while autograd records that: `loss += part` in a loop over parts. The object has the contents, the version and the graph that eager gives it, wherever
# the trace is left.
# expect: traces>=10, compiled>=0.5
import torch
import torch.nn as nn

torch.manual_seed(0)
lengths = torch.Generator().manual_seed(1)


def parts():
    n = int(torch.randint(4, 9, (1,), generator=lengths))
    return torch.randn(n, 4, 6, generator=lengths)


def sums(x, w):
    loss = 0
    for i in range(len(x)):
        loss += (x[i] @ w).pow(2).mean()
    return loss


def from_zeros(x, w):
    total = torch.zeros(4)
    for part in x:
        total += (part @ w).sum(1)
        if i_rare(part):
            total *= 0.5
    return total.pow(2).mean()


def i_rare(part):
    return part[0, 0].item() > 1.2


def rows_added(x, w):
    out = torch.zeros(8, 5)
    index = torch.tensor([0, 3, 5, 7])
    for part in x:
        out.index_add_(0, index, part @ w)
    return out.pow(2).sum() * 0.01


def multiplied(x, w):
    product = torch.ones(4, 5) + w.sum() * 0.0
    for part in x:
        product *= torch.sigmoid(part @ w)
    return product.sum()


def other_forms(x, w):
    a, b, c = (w.sum() * 0.0 + torch.zeros(4, 5) for _ in range(3))
    for part in x:
        h = torch.tanh(part @ w)
        a.addcmul_(h, h, value=0.5)
        b.sub_(h, alpha=2.0).div_(3.0)
        c.masked_fill_(h > 0.7, 0.25).clamp_(-1.0, 1.0).add_(h)
    return (a + b * c).sum()


def one_of_another(x, w):
    a, b = torch.zeros(4, 5), torch.zeros(4, 5)
    for part in x:
        h = part @ w
        b += a * 0.1 + h
        a += b.sin() * 0.1
        b *= 0.9
    return (a * b).sum()


class Sums(nn.Module):
    def __init__(self):
        super().__init__()
        self.total = 0.0
        self.seen = {"squares": torch.zeros(())}

    def forward(self, x, w):
        self.total = torch.zeros(())
        self.seen["squares"] = torch.zeros(())
        kept = []
        for part in x:
            h = (part @ w).mean()
            self.total += h
            self.seen["squares"] += h * h
            kept.append(self.total)
        return self.total + self.seen["squares"] + kept[0]


def looked_at(x, w):
    loss = torch.zeros(())
    seen = []
    for part in x:
        loss += (part @ w).pow(2).mean()
        seen.append((loss._version, loss.grad_fn.name(), loss.requires_grad))
        if len(seen) % 5 == 4:
            lines.append(repr(loss.detach().clone().mul(100).round()))
    lines.append(str(seen[-1]))
    return loss


def aliases(x, w):
    total = w.sum() * 0.0 + torch.zeros(4)
    seen = total.detach()
    history = []
    for part in x:
        total += (part @ w).sum(1)
        history.append(total.detach())  # all of them look at the one memory
        first = total[0] * 2
    lines.append(f"{seen.sum().item():.4f} {sum(each.sum().item() for each in history):.4f} {first.item():.4f}")
    return total.mean()


def view_of_another(x, w):
    base = w.sum() * 0.0 + torch.zeros(3, 4)
    row = base[1]
    for part in x:
        row += (part @ w).sum(1)
    return base.sum()


def with_hook(x, w):
    total = w.sum() * 0.0 + torch.zeros(4)
    total.register_hook(lambda grad: grad * 2)
    for part in x:
        total += (part @ w).sum(1)
    return total.mean()


def without_grad_between(x, w):
    total = torch.zeros(4)
    for part in x:
        total += (part @ w).sum(1)
        with torch.no_grad():
            total *= 0.9
    return total.mean()


def penalised(x, w):
    loss = 0
    for part in x:
        loss += torch.tanh(part @ w).pow(2).mean()
    grad, = torch.autograd.grad(loss, w, create_graph=True)
    return loss + grad.pow(2).sum()


def penalised_products(x, w):
    product = torch.ones(4, 5) + w.sum() * 0.0
    for part in x:
        product *= torch.sigmoid(part @ w)
    grad, = torch.autograd.grad(product.sum(), w, create_graph=True)
    return product.sum() + grad.pow(2).sum()


def stops(x, w):
    loss = 0
    try:
        for i in range(20):
            loss += (x[i] @ w).pow(2).mean()
    except IndexError as error:
        lines.append(str(error))
    return loss


def saved_and_written(x, w):
    total = w.sum() * 0.0 + torch.ones(4)
    kept = 0
    for part in x:
        kept = kept + (total * (part @ w).sum(1)).sum()  # saves what is written below: eager says so in backward()
        total += 1.0
    return kept


def run(how):
    w = nn.Parameter(torch.randn(6, 5) * 0.3)
    optimizer = torch.optim.SGD([w], lr=0.02)
    out = []
    for step in range(40):
        loss = how(parts(), w)
        optimizer.zero_grad()
        try:
            loss.backward()
        except RuntimeError as error:
            out.append(str(error)[:60])
            break
        optimizer.step()
        if step % 13 == 12:
            out.append(f"{loss.item():.4f} {w.sum().item():.4f} {loss._version}")
    return out


lines = []
for how in (sums, from_zeros, rows_added, multiplied, other_forms, one_of_another, Sums(), looked_at, aliases, view_of_another, with_hook, without_grad_between, penalised, penalised_products, stops,
            saved_and_written):
    print(getattr(how, "__name__", "Sums"), type(run)(run.__code__.replace(), globals())(how))
print(*lines, sep="\n")

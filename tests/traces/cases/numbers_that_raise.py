# A number of a later iteration makes an operation raise whose result nobody uses: an index, a bound, a divisor, a power.
# expect: traces>=5
import torch


def until(steps, fn):
    i = -1
    try:
        for i in range(steps):
            t = torch.ones(12)
            fn(t, i)
    except Exception as error:  # noqa: BLE001
        return i, type(error).__name__, str(error).splitlines()[0]
    return i, t.sum().item()


def functions(limit):
    yield "select", lambda t, i: t[i]
    yield "narrow", lambda t, i: t.narrow(0, i, 1)
    yield "narrow of two", lambda t, i: torch.narrow(t.view(4, 3), 1, i % 3, 1 + i // limit)
    yield "select from the end", lambda t, i: t.select(0, -1 - i)
    yield "view", lambda t, i: t[:i + 1].view(i + 1, 1)[i]
    yield "viewed slice", lambda t, i: t[i:i + 1].view(1)
    yield "index_select", lambda t, i: t.index_select(0, torch.tensor([i]))
    yield "take", lambda t, i: t.take(torch.tensor(i))
    yield "index", lambda t, i: t[torch.tensor([0, i])]
    yield "divisor", lambda t, i: torch.arange(4) // (limit - i)
    yield "remainder", lambda t, i: torch.arange(4) % (limit - i)
    yield "power", lambda t, i: torch.arange(1, 4) ** (limit - i)
    yield "bernoulli", lambda t, i: torch.bernoulli(t * (i / limit))
    yield "dropout", lambda t, i: torch.nn.functional.dropout(t, i / limit)
    yield "normal", lambda t, i: torch.normal(t, (limit - i) / 10)
    yield "normal_", lambda t, i: t.normal_(0.0, (limit - i) / 10)
    yield "uniform_", lambda t, i: t.uniform_(i / 10, limit / 10)
    yield "random_", lambda t, i: t.random_(i, limit)
    yield "roll", lambda t, i: torch.roll(t, i, 0)
    yield "unfold", lambda t, i: t.unfold(0, i + 1, 1)
    yield "one_hot", lambda t, i: torch.nn.functional.one_hot(torch.tensor([0, i]), limit)
    yield "embedding", lambda t, i: torch.nn.functional.embedding(torch.tensor([i]), t.view(4, 3))
    yield "scatter", lambda t, i: t.scatter(0, torch.tensor([i]), 1.0)
    yield "cross_entropy", lambda t, i: torch.nn.functional.cross_entropy(t.view(1, 12), torch.tensor([i]))
    yield "label smoothing", lambda t, i: torch.nn.functional.cross_entropy(t.view(1, 12), torch.tensor([1]), label_smoothing=i / limit)
    yield "expand", lambda t, i: t[:1 + i // limit].expand(5)
    yield "chunk", lambda t, i: t.chunk(limit - i)
    yield "repeat", lambda t, i: t.repeat(limit - i)
    yield "diagonal", lambda t, i: t.view(3, 4).diagonal(i - limit)
    yield "unflatten", lambda t, i: t.unflatten(0, (1 + i // limit * 4, -1))


for name, fn in functions(14):
    torch.manual_seed(1)
    print(name, until(22, fn))

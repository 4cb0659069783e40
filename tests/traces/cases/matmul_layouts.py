# Matrix products of every layout, of float and double, one and many at once.
# expect: compiled>=0.2
import torch

torch.set_num_threads(1)
torch.manual_seed(5)


def layouts(rows, columns):
    yield torch.randn(rows, columns)
    yield torch.randn(columns, rows).t()
    yield torch.randn(rows, columns + 3)[:, :columns]
    yield torch.randn(rows, 2 * columns)[:, ::2]
    yield torch.randn(1, columns).expand(rows, columns)


def products(a, b, bias, spread, tall):
    return (torch.mm(a, b), torch.addmm(bias, a, b), torch.addmm(spread, a, b), torch.addmm(tall, a, b), torch.addmm(bias, a, b, beta=0.5),
            torch.addmm(bias, a, b, alpha=2))


def batches(a, b, tall):
    many = torch.stack((a, 2 * a, 3 * a))
    other = torch.stack((b, b + 1, b - 1))
    turned = other.transpose(1, 2).contiguous().transpose(1, 2)
    return torch.bmm(many, other), torch.bmm(many, turned), torch.baddbmm(tall, many, turned), torch.bmm(many, b.expand(3, *b.shape))


def seen(result):
    """A number that each element and its place have a part in."""
    squares = result.double().square().flatten()
    return (squares * torch.arange(1, squares.numel() + 1)).sum().item()


for rows, inner, columns in ((5, 7, 9), (1, 6, 4), (6, 1, 5), (8, 4, 1), (33, 65, 17)):
    pairs = [(a, b) for a in layouts(rows, inner) for b in layouts(inner, columns)]
    bias, spread, tall = torch.randn(columns), torch.randn(2 * columns)[::2], torch.randn(rows, 1)
    for _ in range(16):
        results = [products(a, b, bias, spread, tall) for a, b in pairs]
        results += [(torch.mm(a.double(), b.double()),) for a, b in pairs]
        results += [batches(a, b, tall) for a, b in pairs]
    print([seen(r) for group in results for r in group])

# Numbers that change from run to run and decide more than contents: dims and sizes that schemas call plain integers, dims in lists beside a default that is the same number, scales of which
# a size comes, steps of a range; beside them integers that are numbers (bounds of what is drawn, decimals). They come from objects, so no trace takes them for constants.
# expect: compiled>=0.1, traces>=20
import torch
from torch.nn import functional as F

torch.manual_seed(5)
x, square = torch.randn(4, 3, 5), torch.randn(4, 4)
index = torch.zeros(2, 2, 2, dtype=torch.long)


class Setting:
    def __init__(self, number):
        self.number = number


FUNCTIONS = {
    "reductions": lambda n: [x.argmax(n), x.max(n)[0], x.prod(n), x.sum(n), x.all(n), x.median(n)[0]],
    "along a dim": lambda n: [x.cumsum(n), x.sort(n)[0], x.gather(n, index), x.scatter(n, index, 1.5), x.index_select(n, torch.tensor([0, 2])), x.cummax(n)[0]],
    "softmax": lambda n: [x.softmax(n), x.log_softmax(n), (x / 2).softmax(n) * 3, F.glu(square.expand(4, 4, 4), n)],
    "joined": lambda n: [torch.cat([x, x + 1], n), torch.stack([x, x], n)],
    "views": lambda n: [x.unsqueeze(n) + 1, x[:, :1].squeeze(n) + 1, x.transpose(0, n) * 1, x.select(n, 1) * 2, x.unbind(n)[0] * 3, x.movedim(0, n) * 1, x.diagonal(n) + 0],
    "windows": lambda n: [x.unfold(2, n + 1, 1) * 1, x.unfold(2, 2, n + 1) * 1, x.unfold(n, 2, 1) * 1],
    "lists": lambda n: [x.std(n), x.var(n), torch.var_mean(x, n)[0], torch.linalg.vector_norm(x, dim=n), x.amax(n), x.roll(n, 0), x.logsumexp(n)],
    "padding": lambda n: [F.pad(x, (n, 0)), F.pad(x, (0, n, 1, 0))],
    "scales": lambda n: [F.interpolate(x, scale_factor=n + 1), F.interpolate(x[None], scale_factor=(n + 1.5, 2.0)), F.interpolate(x[None], scale_factor=n + 1.5, mode="bilinear")],
    "ranges": lambda n: [torch.arange(0, 5, n + 0.5), torch.arange(0.0, n + 2.5), torch.linspace(0, n + 1.5, 3)],
    "groups": lambda n: [F.conv1d(torch.ones(1, 6, 5), torch.ones(6, 6 // (n + 1), 2), groups=n + 1), F.group_norm(torch.ones(2, 6, 3), n + 1), x.repeat_interleave(n + 1)],
    "numbers": lambda n: [x.round(decimals=n), torch.empty(6).random_(1, 4 + n), torch.polygamma(n + 1, x.abs() + 1), square.tril(n), torch.fake_quantize_per_tensor_affine(x, 0.1, n, n - 8, 7)],
}
LOOP = """
def run(function, settings):
    shown = []
    for setting in settings:
        results = function(setting.number)
        shown.append([(tuple(y.shape), (y * 1).double().sum()) for y in results])
    return shown
"""


def main():
    for name, function in FUNCTIONS.items():
        space = {}
        exec(compile(LOOP, name, "exec"), space)  # a loop of its own for each
        for numbers in ([0] * 8 + [1] * 8 + [0, 1, 2] * 5 + [2] * 6, [0, 1] * 10):
            print(name)
            for shown in space["run"](function, [Setting(n) for n in numbers]):
                print(*(f"{shape} {total.item():.4f}" for shape, total in shown))


main()

# Functions that C calls, and that coroutines call: traced from their beginning to their return, with branches, inner loops and other sizes.
# expect: compiled>=0.6
import asyncio
import functools

import torch
from torch import nn

torch.manual_seed(0)
torch.set_grad_enabled(False)
model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 4))
weights = [torch.randn(4, 4) * 0.5 for _ in range(3)]


def predict(x, scale=1.0, *, keep=None):
    y = model(x)
    for w in weights:
        y = torch.tanh(y @ w)
    if y.sum().item() > 0:
        y = y * scale
    if keep is not None:
        keep.append(y)
    name = f"{tuple(y.shape)}"
    return y, name


batches = [torch.randn(5, 8) for _ in range(40)]
kept = []
rows = list(map(functools.partial(predict, scale=2.0, keep=kept), batches))
print(round(sum(y.sum().item() for y, _ in rows), 4), rows[-1][1], len(kept), kept[7] is rows[7][0])
rows = list(map(predict, [torch.randn(n, 8) for n in [3, 4, 5, 6] * 8]))
print(round(sum(y.abs().sum().item() for y, _ in rows), 4), [name for _, name in rows[-4:]])


def fails(x):
    y = (x * 2).relu().sum()
    if y > 3:
        raise ValueError(round(y.item(), 3))
    return y + 1


def attempt(x):
    try:
        return fails(x), True
    except ValueError as error:
        return x.sum() + error.args[0], False


results = list(map(attempt, [batch * (0.02 + 0.01 * (k % 7)) for k, batch in enumerate(batches)] * 2))
print(round(sum(y.item() for y, _ in results), 3), sum(fine for _, fine in results))


@functools.lru_cache(maxsize=None)
def table(n):
    return torch.arange(n, dtype=torch.float32).square()


def reduce_step(total, x):
    return total * 0.9 + x.mean() + table(4).sum() * 1e-3


print(round(functools.reduce(reduce_step, batches * 2, torch.zeros(())).item(), 5))


async def serve(queue, answers):
    while True:
        x = await queue.get()
        if x is None:
            return
        answers.append(predict(x)[0].argmax(-1).tolist())


async def main():
    queue, answers = asyncio.Queue(), []
    server = asyncio.create_task(serve(queue, answers))
    for x in batches:
        await queue.put(x)
        await asyncio.sleep(0)
    await queue.put(None)
    await server
    return answers


answers = asyncio.run(main())
print(len(answers), answers[::13])


class Scaled(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, factor):
        ctx.factor = factor
        return x * factor + 1

    @staticmethod
    def backward(ctx, grad):
        return grad * ctx.factor * 2, None


with torch.enable_grad():
    w = torch.ones(6, requires_grad=True)
    for k in range(30):
        y = Scaled.apply(w, 1 + k % 3).tanh().sum()
        y.backward()
print([round(v, 4) for v in w.grad.tolist()])
print([round(v, 4) for v in sorted((torch.tensor(float(k)) for k in range(20)), key=lambda t: (t * 7 % 5).item())[3].reshape(1).tolist()])

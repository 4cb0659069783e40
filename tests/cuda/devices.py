"""Whole loops on several GPUs: `python tests/cuda/devices.py [NAME ...]`, cases as in whole.py. Exit status 77 with fewer than two GPUs.

tests/cuda/test_devices.py runs it under python and under dynvm. The current device is the first one where a case does not say otherwise. What a case appends changes from iteration to
iteration, so that a number that was read too early is a wrong one.
"""
import sys
import threading

import torch
import torch.nn as nn
import torch.nn.functional as F

from whole import STEPS, main, mlp, train

A, B = "cuda:0", "cuda:1"


class Halves(nn.Module):
    """One on each GPU."""

    def __init__(self):
        super().__init__()
        self.first = nn.Sequential(nn.Linear(64, 64), nn.GELU(), nn.LayerNorm(64)).to(A)
        self.second = nn.Sequential(nn.Linear(64, 64), nn.Tanh(), nn.Linear(64, 10)).to(B)

    def forward(self, x):
        return self.second(self.first(x).to(B))


def pipeline(out):
    x, y = torch.randn(32, 64, device=A), torch.randint(0, 10, (32,), device=B)
    for kind, rate in ((torch.optim.Adam, 1e-3), (torch.optim.SGD, 1e-2)):
        model = Halves()
        optimizer = kind(model.parameters(), lr=rate)
        for _ in range(STEPS):
            out.append(train(model, optimizer, x, y).item())


def in_turn(out):
    """The same iteration for tensors of one GPU and of the other."""
    places = [(torch.randn(16, 64, device=place), torch.randn(64, 64, device=place) / 8) for place in (A, B)]
    for k in range(3 * STEPS):
        x, w = places[k % 2]
        y = torch.tanh(x @ w) * (1 + k / STEPS)
        out.append(F.softmax(y, -1).square().sum())
        out.append(y.device.index)


def in_turn_by_loops(out):
    def steps(x, w):
        for k in range(STEPS):
            x = F.layer_norm(torch.tanh(x @ w) + x * (k / STEPS), (64,))
            out.append(x.square().mean() + x.amax())

    places = [(torch.randn(16, 64, device=place), torch.randn(64, 64, device=place) / 8) for place in (A, B)]
    for turn in range(4):
        steps(*places[turn % 2])


def second_only(out):
    """Kernels of each form."""
    long, rows, norm = torch.linspace(-1, 1, 1 << 22, device=B), torch.randn(64, 256, device=B), nn.LayerNorm(256).to(B)
    with torch.no_grad():
        for k in range(STEPS):
            y = F.gelu(norm(rows * (1 + k / STEPS)) + k)
            out.append(F.softmax(y, -1).amax(-1).sum())
            out.append((long * k).square().sum() / long.numel())
            out.append(y.sum(0).amax().item())
            out.append(y.cumsum(-1).mean())


def second_only_training(out):
    torch.cuda.manual_seed_all(1)
    model = nn.Sequential(nn.Linear(64, 64), nn.Dropout(0.3), nn.ReLU(), nn.LayerNorm(64), nn.Linear(64, 10)).to(B)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    x, y = torch.randn(32, 64, device=B), torch.randint(0, 10, (32,), device=B)
    for _ in range(STEPS):
        out.append(train(model, optimizer, x, y).detach())
    out.extend(torch.rand(3, device=place).sum() for place in (A, B))  # generators are where eager leaves them
    out.append(torch.cuda.current_device())


def dropout_in_turn(out):
    """Each has a generator of its own."""
    xs = [torch.linspace(0.5, 1, 256, device=place) for place in (A, B)]
    for k in range(STEPS):
        first, second = F.dropout(xs[0] * k, 0.25), F.dropout(xs[1] * k, 0.5)
        out.append(first.sum() + F.dropout(first, 0.5).sum())
        out.append(second.sum())


def unused_results(out):
    """Of library operations, behind work of the other device."""
    a, b = torch.randn(100, device=A), torch.linspace(0, 1, 100, device=B)
    for k in range(STEPS):
        out.append(torch.tanh(a + k).sum())
        out.append((b * k).topk(3).values.sum())
        out.append((b + k).sort().values[5])


def current_device(out):
    """The same loop makes tensors where the current device says: nothing else tells which one that is."""
    host = torch.linspace(-1, 1, 64)
    for index in (0, 1, 0, 1):
        torch.cuda.set_device(index)
        for k in range(STEPS):
            x = torch.full((16, 64), k / STEPS, device="cuda")
            y = F.gelu(x + host.cuda())
            out.append(y.sum())
            out.extend((x.device.index, y.device.index))
    torch.cuda.set_device(0)


def current_device_of_iterations(out):
    x = torch.ones(16, 64, device=A)
    for k in range(2 * STEPS):
        a = torch.tanh(torch.full((16, 64), k / STEPS, device="cuda") - x)
        with torch.cuda.device(1 if k % 5 < 3 else 0):
            b = torch.sigmoid(torch.full((16, 64), k / STEPS, device="cuda") * 2)
            if b.sum().item() > 700:
                b = b * 2
            out.append(torch.cuda.current_device())
        out.append(a.sum().item() + b.sum().item())
        out.append(10 * b.device.index + torch.cuda.current_device())


def current_device_by_number(out):
    """The number is recorded where it leaves the current device as it is."""
    for k in range(2 * STEPS):
        with torch.cuda.device(k // 16 % 2):
            x = torch.tanh(torch.full((16, 64), k / STEPS, device="cuda"))
            out.extend((x.sum(), x.device.index, torch.cuda.current_device()))


def current_again(out):
    """Work of the second GPU, long enough to be seen unfinished, while that is the current one and while it is not."""
    x, weights = torch.eye(2048, device=B), [torch.eye(2048, device=B) for _ in range(6)]
    for index in (1, 0, 1, 0):
        with torch.cuda.device(index):
            for k in range(STEPS):
                y = x * (k + 1)
                for w in weights:
                    y = torch.relu(y @ w)
                out.append(y.sum() / 2048)
            out.append(y.amax().item())


def threads(out):
    """One for each GPU, twice: the second ones find the loop's traces before they have worked on a device."""
    replicas = []
    for place in (A, B):
        model = nn.Sequential(nn.Linear(64, 64), nn.GELU(), nn.Dropout(0.2), nn.Linear(64, 10)).to(place)
        replicas.append((model, torch.optim.Adam(model.parameters(), lr=1e-4), torch.randn(32, 64, device=place), torch.randint(0, 10, (32,), device=place), []))

    def work(model, optimizer, x, y, kept):
        for _ in range(3 * STEPS):
            x = torch.tanh(x + 0.1)  # a kernel is what they begin with
            kept.append(x.sum().item())
            kept.append(train(model, optimizer, x, y).item())
        kept.append(torch.cuda.current_device())

    for _ in range(2):
        started = [threading.Thread(target=work, args=replica) for replica in replicas]
        for thread in started:
            thread.start()
        for thread in started:
            thread.join()
    for replica in replicas:
        out.extend(replica[-1])


def threads_with_devices(out):
    """Batches go where each thread's current device says; its model is there."""
    models, batches, kept = [mlp().eval().to(place) for place in (A, B)], torch.randn(4 * STEPS, 16, 64), [[], []]

    def work(index):
        torch.cuda.set_device(index)
        model = models[index]
        with torch.no_grad():
            for batch in batches:
                y = model(batch.cuda())
                kept[index].append(y.square().mean().item() + y.device.index)

    for turn in range(4):  # one thread at a time
        thread = threading.Thread(target=work, args=(turn % 2,))
        thread.start()
        thread.join()
    out.extend(kept[0] + kept[1])


def data_parallel(out):
    """Replicas whose gradients are averaged, so they stay equal."""
    first, second = mlp().to(A), mlp().to(B)
    second.load_state_dict(first.state_dict())
    optimizers = [torch.optim.SGD(each.parameters(), lr=1e-2, momentum=0.9) for each in (first, second)]
    x, y = torch.randn(2, 32, 64), torch.randint(0, 10, (2, 32))
    x0, y0, x1, y1 = x[0].to(A), y[0].to(A), x[1].to(B), y[1].to(B)
    for _ in range(STEPS):
        optimizers[0].zero_grad()
        optimizers[1].zero_grad()
        loss0, loss1 = F.cross_entropy(first(x0), y0), F.cross_entropy(second(x1), y1)
        loss0.backward()
        loss1.backward()
        for p, q in zip(first.parameters(), second.parameters()):
            mean = (p.grad + q.grad.to(A)) / 2
            p.grad = mean
            q.grad.copy_(mean)
        optimizers[0].step()
        optimizers[1].step()
        out.append(loss0.item() + loss1.item())
    out.extend((p - q.to(A)).abs().amax() for p, q in zip(first.parameters(), second.parameters()))


def streams(out):
    """A stream of the second GPU, ordered by events with both current ones."""
    side, x, w = torch.cuda.Stream(B), torch.randn(256, 256, device=A), torch.randn(256, 256, device=B) / 16
    for k in range(STEPS):
        y = torch.tanh(x * (1 + k / STEPS)) + k / STEPS
        side.wait_event(torch.cuda.current_stream(A).record_event())
        with torch.cuda.stream(side):
            z = F.gelu(y.to(B) @ w) * 2
        torch.cuda.current_stream(B).wait_stream(side)
        out.append(z.square().mean() + torch.softmax(z, -1).amax())
        x = x * 0.99 + z.mean().to(A)  # before its memory is used again, `side` waits for what has used it
        out.append(torch.cuda.current_device())


def pinned(out):
    """Batches are copied without waiting, and numbers back."""
    batches, back = torch.randn(STEPS, 2, 32, 64).pin_memory(), torch.zeros(2).pin_memory()
    w0, w1 = torch.randn(64, 64, device=A) / 8, torch.randn(64, 64, device=B) / 8
    for batch in batches:
        a, b = batch[0].to(A, non_blocking=True), batch[1].to(B, non_blocking=True)
        back[0].copy_(torch.tanh(a @ w0).square().mean(), non_blocking=True)
        back[1].copy_(torch.softmax(b @ w1, -1).amax(-1).sum(), non_blocking=True)
        torch.cuda.synchronize(A)
        torch.cuda.synchronize(B)
        out.extend(back.tolist())


def numbers(out):
    """Of both in one iteration, of kernels and of the library; the second one's work takes longer than is spun for."""
    a, b, long = torch.linspace(0, 1, 1000, device=A), torch.linspace(0, 1, 1000, device=B), torch.eye(4096, device=B)
    for k in range(STEPS):
        low, high = (a + k).amin().item(), (b * (k + 1)).amax().item()
        late = ((long @ long) * k).amax().item()
        if (long @ (long * k)).amax() > 20:
            out.append(low + high)
        elif (a * k).sum() > 2000:
            out.append(low - high)
        out.append(late)
        out.append((long[0] * k).sort().values[-1].item() - (a * k).sort().values[0].item())


def errors(out):
    """Tensors of two GPUs in one operation: it raises what it does in eager, and the loop goes on."""
    a, b = torch.linspace(0, 1, 100, device=A), torch.linspace(0, 1, 100, device=B)
    for k in range(4 * STEPS):  # few operations, so that the loop around the cases is waited for
        x = torch.tanh(a * k)
        try:
            x = x + b
        except RuntimeError as error:
            out.extend(str(error).encode())
        out.append(x.square().sum())


def host_scalars(out):
    """Tensors of no dimensions in the host's memory are numbers to both."""
    a, b, scale = torch.randn(1000, device=A), torch.randn(1000, device=B), torch.tensor(0.5)
    for k in range(STEPS):
        scale = scale + 0.1
        out.append(torch.tanh(a * scale).square().sum())
        out.append((b + scale).square().mean() + torch.sigmoid(b * torch.tensor(k / STEPS)).sum())


CASES = {f.__name__: f for f in (pipeline, in_turn, in_turn_by_loops, second_only, second_only_training, dropout_in_turn, unused_results, current_device, current_device_of_iterations,
                                 current_device_by_number, current_again, threads, threads_with_devices, data_parallel, streams, pinned, numbers, errors, host_scalars)}


if __name__ == "__main__":
    sys.exit(main(CASES, sys.argv[1:], devices=2))

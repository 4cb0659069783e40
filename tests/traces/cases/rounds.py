# Short iterations: one trace goes through several of them. Loops that end, break, raise and change their way in any of these, and what variables, lists and attributes have then.
import sys

import torch

torch.manual_seed(0)
xs = [torch.randn(3, 4) for _ in range(64)]
w = torch.randn(4, 4) * 0.5


def trips(n):
    h = c = torch.zeros(3, 4)
    for t in range(n):
        gates = xs[t % 64] @ w + h
        i, f = gates.chunk(2, 1)
        c = torch.cat([torch.sigmoid(f), torch.tanh(i)], 1) * 0.5 + c * 0.3
        h = torch.tanh(c)
    return h, c, n and gates.sum(), n and (i + f)


for n in [90, 3, 17, 0, 1, 2, 5, 16, 31, 32, 33, 64, 7, 4, 90, 8, 9, 10, 11, 12, 13, 14, 15]:
    print(n, *(value if isinstance(value, int) else round(value.double().sum().item(), 4) for value in trips(n)))


def broken(stop):
    x, seen = torch.ones(4), []
    for k in range(200):
        x = x * 0.99 + 0.01 * k
        seen.append(x)
        if k == stop:
            break
        y = x.neg()
    else:
        stop = -1
    return stop, len(seen), len({id(value) for value in seen}), round(seen[len(seen) // 2].sum().item(), 2), round(y.sum().item(), 2), k


for stop in (199, 150, 37, 121, 122, 123, 124, 3, 1, 300):
    print(*broken(stop))


class Meter:
    def __init__(self):
        self.total, self.count = torch.zeros(()), 0


def raised(values):
    meter = Meter()
    try:
        for value in values:
            meter.total = meter.total + value * 2
            meter.count += 1
            last = meter.total.sqrt()
    except TypeError as error:
        frame = error.__traceback__.tb_frame
        print(type(error).__name__, sorted(name for name in frame.f_locals if name != "frame"), round(frame.f_locals["last"].item(), 3))
    return meter.count, meter.total.item()


numbers = [torch.tensor(float(k % 7)) for k in range(150)]
print(*raised(numbers))
for at in (149, 97, 98, 99, 100, 60):
    print(*raised(numbers[:at] + [None] + numbers[at:]))


def changed():
    x = torch.linspace(0, 1, 5)
    scale = 1
    for k in range(240):
        if k in (100, 101, 150, 203):  # no tensor decides it
            scale = torch.tensor(0.5) if k % 2 else 2
        x = torch.sin(x * scale + 0.1)
        before = x
        x = before.clone()
        x += 0.01
        x.mul_(0.999)
    return x, before


print(*(round(value.double().sum().item(), 4) for value in changed()))


def counted():
    k, x = 0, torch.zeros(2)
    while k < 333:
        x = x + 1
        k += 1
        if k == 200:
            print("in between", x.tolist(), sorted(locals()))
    return x.tolist(), k


for _ in range(3):
    print(counted())


def nested():
    x = torch.ones(2)
    for k in range(150):
        for power in range(11):
            x = x * (1 - 0.001 * power)
        x = x + 0.05
    return x


for _ in range(2):
    print(round(nested().sum().item(), 3))


def described(values):
    text = []
    for k, value in enumerate(values):
        total = value * 2
        text.append(f"{total.shape[0]}" if k != 77 else repr(locals().keys()))
    return len(text), text[76:79]


print(*described(xs * 2))


def accumulated():
    parameter = torch.full((3,), 0.5, requires_grad=True)
    for k in range(120):
        loss = (parameter * parameter).sum()
        loss.backward()
        with torch.no_grad():
            parameter -= 0.01 * parameter.grad
            parameter.grad = None
    return round(parameter.sum().item(), 4), round(loss.item(), 4), loss.grad_fn is not None, parameter._version


print(*accumulated())
sys.stdout.flush()

# Loops of generators and coroutines that do not suspend them are loops as others are: compiled, whatever suspends them afterwards.
# expect: traces>=6, compiled>=0.6
import asyncio

import torch

torch.manual_seed(0)


def train(epochs):
    w = torch.randn(5, 3, requires_grad=True)
    for _ in range(epochs):
        total = 0.0
        for _ in range(60):
            loss = (torch.randn(4, 5) @ w).tanh().pow(2).mean()
            loss.backward()
            with torch.no_grad():
                w -= 0.1 * w.grad
                w.grad = None
            total += loss.item()
        yield f"{total:.4f}"
    return "done"


def stages():
    print((yield from train(6)))
    try:
        for t in range(5):
            acc = torch.zeros(3)
            for j in range(80):
                acc = acc * 0.9 + j * 0.01
                if t == 4 and j == 70:
                    raise ValueError("stop")
            yield f"{acc.sum().item():.4f}"
    finally:
        print("closed")


try:
    for line in stages():
        print(line)
except ValueError as error:
    print(error, error.__traceback__.tb_next.tb_lineno)


async def step(n):
    acc = torch.zeros(3)
    for j in range(n):
        acc = acc * 0.9 + j * 0.01
    return f"{acc.sum().item():.4f}"


async def main():
    sums = []
    for k in range(10):
        sums.append(await step(50 + k))
        a = torch.ones(2)
        for j in range(60):
            a = a * 1.01 + [x * 0.5 for x in (1.0, 2.0)][j % 2]
        sums.append(f"{a.sum().item():.3f}")
        if k % 3 == 0:
            await asyncio.sleep(0)
    return sums


print(asyncio.run(main()))


def returns_early():
    t = torch.zeros(2)
    for k in range(300):
        t = t + 1
        if k == 250:
            return
    yield t


def closed():
    t = torch.zeros(2)
    try:
        for _ in range(3):
            for _ in range(100):
                t = t + 1
            yield t.sum().item()
    except GeneratorExit:
        for _ in range(100):
            t = t * 1.01
        print("exit", f"{t.sum().item():.4f}")
        raise


def is_sent_to():
    t, x = torch.zeros(2), 1.0
    while True:
        for _ in range(60):
            t = t + x
        x = yield t.sum().item()


print(list(returns_early()))
one = closed()
print(next(one), next(one))
one.close()
one = is_sent_to()
next(one)
print([one.send(float(i)) for i in range(5)])

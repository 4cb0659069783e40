# A loop leaves a generator in its `try`: its `finally` runs then, also in the iteration that is recorded, and before what comes next.
# expect: compiled>=0.5, traces>=1
# expect-abort: generator_closes, generator_frame
import torch

log = []


def rows(x):
    try:
        for i in range(10):
            yield i, x * i
    finally:
        log.append("closed")


def main():
    x = torch.ones(4)
    total = torch.zeros(4)
    for step in range(300):
        for i, row in rows(x):
            total = torch.tanh(total * 0.5 + row * 0.1)
            if i == step % 4:
                break
        log.append("left")
        total = total + 0.01
    print(f"{total.sum().item():.5f}", len(log), all(log[k] != log[k + 1] for k in range(len(log) - 1)), log[:2])


main()

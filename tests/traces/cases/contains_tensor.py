# `in` and `not in` on tensors and on a class with __contains__ in Python.
# expect: compiled>=0.65, traces>=1
# expect-abort: none
import torch


class Interval:
    def __init__(self, low, high):
        self.low, self.high = low, high

    def __contains__(self, x):
        return self.low <= x <= self.high


def main():
    torch.manual_seed(0)
    tokens = [torch.randint(0, 6, (2, 9)) for _ in range(5)]
    interval = Interval(3, 11)
    hits = misses = inside = outside = 0
    total = 0.0
    for i in range(600):
        t = tokens[i % 5]
        if 3 in t[:, [-1, 0]]:
            hits += 1
        if 5 not in t:
            misses += 1
        if i % 16 in interval:
            inside += 1
        outside += 2 * i not in interval
        total += (t * 0.5).sum().item()
    print(hits, misses, inside, outside, f"{total:.2f}")


main()

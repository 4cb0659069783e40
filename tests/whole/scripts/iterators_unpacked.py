# Iterators that are unpacked, made lists and tuples of, in part and as a whole: zip, map, iter.
# expect: compiled>=0.8, traces>=1
import torch


def run(steps):
    x, total = torch.ones(3), 0
    for i in range(steps):
        names, values = zip(*[("a", x * i), ("b", x + i)], strict=True)
        first_type, second_type = map(type, values)
        numbers = iter([1, 2, 3])
        first, second, third = numbers
        left = list(numbers)
        pairs = tuple(zip(names, values))
        x = values[0] * 0.1 + pairs[1][1] * second
        x = x / x.sum()
        total += len(names) + len(left) + (first_type is second_type) + third - first
    return [f"{v:.5f}" for v in x.tolist()], total


print(run(100))

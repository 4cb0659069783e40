# Torch functions that are called through a variable and are another one each time: what is recorded for one is not run for the other.
# expect: compiled>=0.7, traces>=2
# expect-abort: none
import torch


def apply(function, x, n):
    return function(x, n)


def wrap(f):
    def wrapped(x, n):
        return f(x, n)

    return wrapped


def main():
    torch.manual_seed(0)
    x = torch.rand(4, 4)
    functions = [torch.pow, torch.rsub, torch.mul, torch.add]
    wrapped = [wrap(f) for f in functions]
    total = 0.0
    for i in range(300):
        y = apply(functions[i % 2], x, 2)
        z = wrapped[i % 4](x, 3)
        total += (y.sum() + z.sum()).item()
    print(f"{total:.3f}")


main()

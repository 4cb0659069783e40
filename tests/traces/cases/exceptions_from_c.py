# Exceptions that C code raises and the trace catches: a missing key, attribute, or item of an iterator.
# expect: compiled>=0.75, traces>=3
import torch

x = torch.arange(4.0)


class Config:
    scale = 2.0


def keys(n):
    table, total = {"a": x}, 0.0
    for i in range(n):
        try:
            v = table["b"]
        except KeyError as error:
            v = table["a"] * i
        if i == n - 3:
            table["b"] = x * 100
        try:
            w = {"k": v, "l": x}["m"]
        except (KeyError, IndexError):
            w = v + 1
        total += w.sum().item()
    return total


def attributes(n):
    config, total = Config(), 0.0
    for i in range(n):
        try:
            s = config.shift
        except AttributeError:
            s = config.scale
        try:
            b = getattr(config, "bias")
        except AttributeError:
            b = 1.0
        finally:
            total += 1
        if i == n - 4:
            config.bias = 5.0
        total += (x * s + b).sum().item()
    return total


def iterators(n):
    total, grown = 0.0, 0
    for i in range(n):
        items = [x, x * 2, x + i]
        it = iter(items)
        while True:
            try:
                total += next(it).sum().item()
            except StopIteration:
                break
        items.append(x)
        grown += len(list(it))
    return total, grown


print(keys(120))
print(attributes(120))
print(iterators(120))


# In the loop's own frame, with the exception's name in use.
def named():
    x, seen = torch.ones(4), []
    for i in range(40):
        x = x * 0.9 + 0.1
        try:
            if i % 2 == 1:
                x.nothing
        except (KeyError, AttributeError) as error:
            seen.append(type(error).__name__)
    return x.sum().item(), len(seen), seen[-1]


print(named())

# A variable that a lambda closes over is deleted at the end of each iteration, as generation loops do with a model's outputs;
# the same in a function that is called from a loop, and once where it has no value.
# expect: compiled>=0.8
import torch


def whole(n):
    x, total = torch.ones(8), 0.0
    for i in range(n):
        outputs = torch.sin(x) * i
        best = max(range(2), key=lambda k: float(outputs[k]))
        total += best + outputs.sum().item()
        del outputs
    try:
        return total, outputs
    except NameError as error:
        return total, type(error).__name__


def step(x):
    outputs = torch.cos(x) + 1
    look = lambda: outputs  # noqa: E731
    result = look() * 2
    del outputs
    return result


def twice(n):
    x, seen = torch.ones(8), 0
    kept = torch.zeros(8)
    for i in range(n):
        kept = kept + step(x)
        value = kept * 2
        show = lambda: value  # noqa: E731
        if i != n - 2:
            kept = show() / 2
            del value
        try:
            seen += value.numel()
        except NameError:
            seen += 1
    return kept.sum().item(), seen


print("%.4f %s" % whole(60))
print("%.4f %s" % twice(40))

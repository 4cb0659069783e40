# __torch_function__ that leaves to the other operand, raises, or answers itself, by what the data say; a class that changes in the middle.
# expect: traces>=1
import torch


class Limited(torch.Tensor):
    limit = 10.0

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        if func is torch.Tensor.sub and not isinstance(args[1], torch.Tensor):
            return NotImplemented
        if func is torch.sum:
            return "a sum"
        result = super().__torch_function__(func, types, args, kwargs)
        if isinstance(result, Limited) and result.as_subclass(torch.Tensor).max().item() > cls.limit:
            raise OverflowError(f"{func.__name__} above {cls.limit}")
        return result


value = torch.ones(4).as_subclass(Limited)
refused = overflows = 0
history = []
for step in range(120):
    try:
        value = value * 1.1 + 0.01
    except OverflowError as error:
        overflows += 1
        history.append(str(error))
        value = torch.ones(4).as_subclass(Limited)
    try:
        value - 1
    except TypeError:
        refused += 1
    if step == 80:
        Limited.limit = 5.0
    answer = torch.sum(value)
print(answer, refused, overflows, history, [f"{v:.4f}" for v in value.as_subclass(torch.Tensor).tolist()])

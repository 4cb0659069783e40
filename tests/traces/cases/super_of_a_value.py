# super() without arguments in a function that torch calls for a subclass of its own: it is one of a frame, whatever the trace knows of the name.
# expect: compiled>=0
import torch


class Unit(torch.Tensor):
    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        r = super().__torch_function__(func, types, args, kwargs or {})
        if func in (torch.Tensor.mul, torch.mul):
            r.unit = [a for a in args if isinstance(a, cls)]
        return r


acc = torch.zeros(2).as_subclass(Unit)
for k in range(100):
    acc = acc * 0.9 + 0.1
print([f"{v:.5f}" for v in acc.tolist()], type(acc).__name__)

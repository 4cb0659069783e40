# Tensors of a subclass that count what made them: attributes read, written and missing, carried from one iteration to the next, kept past the loop.
# expect: compiled>=0.8, traces>=1
import torch


class Counted(torch.Tensor):
    depth = 0

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        result = super().__torch_function__(func, types, args, kwargs)
        if isinstance(result, Counted):
            result.depth = 1 + max([a.depth for a in args if isinstance(a, Counted)], default=0)
            result.by = getattr(func, "__name__", "?")
        return result


weight = torch.eye(4).as_subclass(Counted)
state = torch.arange(4.0).as_subclass(Counted)
kept = []
for step in range(80):
    state = torch.tanh(state @ weight) + 0.1
    if step % 20 == 7:
        kept.append(state)
        state = state.detach()
    if hasattr(state, "missing"):
        print("never")
for tensor in kept:
    print(type(tensor).__name__, tensor.depth, tensor.by, [f"{v:.5f}" for v in tensor.tolist()])
print(type(state).__name__, state.depth, state.by, Counted.depth, "by" in weight.__dict__)

# assert with messages, del of names, items and attributes, and chained comparisons guard each step of a loop.
# expect: compiled>=0.7, traces>=1
import torch


class Scratch:
    pass


torch.manual_seed(67)
x = torch.rand(6)
scratch, buffers, failures = Scratch(), {}, []
for step in range(50):
    scratch.value = x * 2
    buffers[step] = scratch.value.mean()
    try:
        assert 0.0 <= buffers[step] < 1.5, f"mean out of range at {step}"
        assert scratch.value.shape == x.shape and not torch.isnan(x).any()
    except AssertionError as error:
        failures.append(str(error))
        x = x * 0.5
    y = torch.sin(x + 0.3) + 0.1
    x = y * 1.2
    del y, scratch.value
    if len(buffers) > 3:
        del buffers[min(buffers)]
print(failures[:2], len(failures), sorted(buffers), hasattr(scratch, "value"), "y" in globals(), f"{x.sum().item():.4f}")

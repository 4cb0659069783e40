# Context managers of the user's, set_grad_enabled and contextlib in the loop.
import contextlib

import torch

depth = 0


class Scope:
    def __enter__(self):
        global depth
        depth += 1
        return depth

    def __exit__(self, kind, value, traceback):
        global depth
        depth -= 1
        return kind is ValueError


@contextlib.contextmanager
def scaled(x, k):
    yield x * k


w = torch.tensor([0.5, -0.5], requires_grad=True)
count = 0
for i in range(50):
    with Scope() as d, scaled(w, 0.1 * i) as y:
        with torch.set_grad_enabled(i % 2 == 0):
            z = (y * d).sum() * (w * 1).sum().cos()
        if i % 10 == 9:
            raise ValueError("swallowed")
        count += z.requires_grad + (w * 2).requires_grad
        z = z + w.sum()
        z.backward()
print(depth, count, [f"{v:.5f}" for v in w.grad.tolist()])

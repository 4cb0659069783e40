# Compiled functions that give views of their arguments, their arguments themselves, and both from AOTAutograd.
import torch

for name in ("eager", "aot_eager"):
    torch._dynamo.reset()

    @torch.compile(backend=name)
    def f(x, y):
        return x, x[1:], y.t(), x + 1

    x, y = torch.zeros(4), torch.zeros(2, 3)
    for i in range(50):
        same, view, turned, new = f(x, y)
        view += 1
        turned[0] += i
        new -= 1
        assert same.data_ptr() == x.data_ptr()
    print(name, x, y, new, x._version)

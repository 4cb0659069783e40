# Functions of torch.func enter modes that no trace supports: their calls stay calls, and what is around them is compiled.
# expect: compiled>=0.4
import torch

torch.manual_seed(0)
dots = torch.vmap(torch.vmap(torch.dot, in_dims=(None, 0)), in_dims=(0, None))
slope = torch.func.grad(lambda x: (x ** 3).sum())
a, b = torch.randn(3, 8), torch.randn(5, 8)
total = torch.zeros(())
for i in range(200):
    a = torch.nn.functional.normalize(a + 0.1 * dots(a, b).softmax(1) @ b, dim=1)
    total = total * 0.5 + slope(a).abs().mean() + torch.tanh(a).sum()
print(f"{total.item():.4f}", [f"{v:.3f}" for v in a.sum(1).tolist()])

# In a function of the script's own the mode is entered in the middle.
class Doubles(torch.overrides.TorchFunctionMode):
    def __torch_function__(self, func, types, args=(), kwargs=None):
        result = func(*args, **(kwargs or {}))
        return result * 2 if func is torch.sin else result


def step(x):
    y = torch.relu(x) + 1
    with Doubles():
        y = torch.sin(y)
    return y * 0.5


x = torch.zeros(4)
for i in range(200):
    x = step(x)
print([f"{v:.4f}" for v in x.tolist()])

# Torch function modes, as torch.set_default_device and torch.device as a context enter them: what they do is followed, torch finds its stack of modes as python has it wherever something looks,
# in a residual call, behind an exit and in a handler, and tracebacks show no frames of dynvm's.
# expect: compiled>=0.5
import sys
import traceback
import torch
import torch.nn.functional as F
from torch.overrides import TorchFunctionMode, _get_current_function_mode_stack

torch.manual_seed(0)


def default_device():
    torch.set_default_device("cpu")
    net = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.ReLU(), torch.nn.Dropout(0.1), torch.nn.Linear(8, 1))
    optimizer = torch.optim.SGD(net.parameters(), lr=0.05, momentum=0.9)
    total = 0.0
    for i in range(60):
        x = torch.randn(5, 4) + torch.arange(4) * i / 60
        optimizer.zero_grad()
        loss = F.mse_loss(net(x), torch.zeros(5, 1))
        loss.backward()
        optimizer.step()
        total += loss.item() + len(x) + x.shape[1] + x.ndim
        if i % 9 == 4: total += sum(p.grad.abs().sum().item() for p in net.parameters())
    torch.set_default_device(None)
    return f"{total:.2f}"


class Logs(TorchFunctionMode):
    def __init__(self, factor=1):
        self.names, self.factor, self.depths = {}, factor, []

    def __torch_function__(self, func, types, args=(), kwargs=None):
        name = getattr(func, "__name__", str(func))
        self.names[name] = self.names.get(name, 0) + 1
        result = func(*args, **(kwargs or {}))
        if name == "tanh":
            if self.names[name] % 13 == 0: self.depths.append(len(_get_current_function_mode_stack()))
            return result * self.factor
        return result


def nested():
    x = torch.linspace(-1, 1, 6).reshape(2, 3)
    outer, inner = Logs(2), Logs(3)
    for i in range(60):
        with outer:
            y = torch.tanh(x) + x.sum(dim=0, keepdim=True)
            with inner:
                y = y * torch.tanh(x + i) - x.T.reshape(2, 3)
                y[0] = 1
                if i == 41: y.grad = None
        x = y / (1 + y.abs().max())
    return x, outer.names, inner.names, outer.depths, inner.depths


class Refuses(TorchFunctionMode):
    def __init__(self): self.n = 0
    def __torch_function__(self, func, types, args=(), kwargs=None):
        if func is torch.sin:
            self.n += 1
            if self.n % 17 == 0: raise RuntimeError(f"call {self.n}")
        return func(*args, **(kwargs or {}))


def raises():
    x, mode, said = torch.ones(3), Refuses(), []
    for i in range(60):
        try:
            with mode:
                x = torch.sin(x) + 0.1
                x = torch.sin(x).add(0.2)
        except RuntimeError as e:
            frames = traceback.extract_tb(sys.exc_info()[2])
            said.append((str(e), len(_get_current_function_mode_stack()), [f.name for f in frames]))
    return x, said


def in_context():
    total = 0.0
    for i in range(60):
        with torch.device("cpu"), torch.no_grad():
            y = torch.full((3,), float(i)) + torch.eye(3)[i % 3]
            if i % 11 == 5: total += len(_get_current_function_mode_stack()) * 100
        total += y.sum().item() + len(_get_current_function_mode_stack())
    return f"{total:.3f}"


class Times(TorchFunctionMode):
    calls = 0
    def __torch_function__(self, func, types, args=(), kwargs=None):
        Times.calls += 1
        if Times.calls % 50 == 0: return torch.ones(3)
        return func(*args, **(kwargs or {}))


def around_loop():
    x = torch.zeros(3)
    with Times():
        for i in range(60):
            x = x * 0.5 + i
            with torch.enable_grad() if i % 2 else torch.no_grad(): x = x + 1
    return x, Times.calls


for work in (default_device, nested, raises, in_context, around_loop):
    print(work.__name__, work())

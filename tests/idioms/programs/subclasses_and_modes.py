# Tensor subclasses, function and dispatch modes, and settings that hold for a block or a program.
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_map

model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 8))
x, inputs = torch.randn(4, 8), torch.randn(STEPS, 4, 8)

# %% named_subclass
class Image(torch.Tensor):
    @staticmethod
    def __new__(cls, data, label="?"):
        made = torch.as_tensor(data).as_subclass(cls)
        made.label = label
        return made

    def flipped(self):
        return self.flip(-1)


for epoch in range(EPOCHS):
    y = Image(x, label="start")
    for i in range(STEPS):
        with torch.no_grad():
            y = torch.tanh(model(y.flipped() + inputs[i]))
    mark()
print(type(y).__name__, y.sum().item(), getattr(y, "label", None), isinstance(y, torch.Tensor))

# %% torch_function_units
class Quantity:
    def __init__(self, value, unit):
        self.value, self.unit = value, unit

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        unit = next(a.unit for a in args if isinstance(a, cls))
        plain = [a.value if isinstance(a, cls) else a for a in args]
        return cls(func(*plain, **(kwargs or {})), unit)

    def __mul__(self, other):
        return torch.mul(self, other)


q = Quantity(x, "m")
for epoch in range(EPOCHS):
    for i in range(STEPS):
        q = torch.sin(torch.add(q * 0.5, inputs[i]))
        q = torch.sub(q, torch.mean(torch.abs(q), dim=1, keepdim=True).value)
        total = torch.sum(torch.clamp(q, min=-0.5))
    mark()
print(total.value.item(), total.unit, type(q).__name__)

# %% torch_function_subclass_logs
class Logged(torch.Tensor):
    seen = {}

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        name = getattr(func, "__name__", str(func))
        cls.seen[name] = cls.seen.get(name, 0) + 1
        return super().__torch_function__(func, types, args, kwargs or {})


for epoch in range(EPOCHS):
    y = x.as_subclass(Logged)
    for i in range(STEPS):
        y = torch.tanh(y @ y.T @ inputs[i] * 0.1 + y)
        z = F.relu(y).mean(0)
    mark()
print(y.as_subclass(torch.Tensor).sum(), {k: v for k, v in Logged.seen.items() if v >= 500})

# %% function_mode_replaces
class Smooth(TorchFunctionMode):
    def __init__(self):
        super().__init__()
        self.replaced = 0

    def __torch_function__(self, func, types, args=(), kwargs=None):
        if func in (F.relu, torch.relu):
            self.replaced += 1
            return F.softplus(args[0])
        return func(*args, **(kwargs or {}))


mode = Smooth()
for epoch in range(EPOCHS):
    for i in range(STEPS):
        with torch.no_grad(), mode:
            x = torch.tanh(model(x) + inputs[i])
            x = x - 0.1 * torch.relu(model(x)).mean(0)
    mark()
print(x.sum().item(), mode.replaced)

# %% wrapper_subclass_dispatch
class Scaled(torch.Tensor):
    @staticmethod
    def __new__(cls, inner, scale):
        return torch.Tensor._make_wrapper_subclass(cls, inner.shape, dtype=inner.dtype)

    def __init__(self, inner, scale):
        self.inner, self.scale = inner, scale

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        def unwrap(t):
            return t.inner * t.scale if isinstance(t, cls) else t

        return func(*tree_map(unwrap, args), **tree_map(unwrap, kwargs or {}))


weight = Scaled(torch.randn(8, 8), 0.2)
for epoch in range(EPOCHS):
    for i in range(STEPS):
        x = torch.tanh(torch.mm(x, weight) + inputs[i])
        x = torch.tanh(F.linear(x, weight) + inputs[i - 1])
        x = torch.sin(torch.add(x, weight[:4])) if i % 2 else x
    mark()
print(type(x).__name__, x.sum().item(), weight.shape)

# %% dispatch_mode_counts_operations
class Count(TorchDispatchMode):
    def __init__(self):
        super().__init__()
        self.counts = {}

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        name = func.overloadpacket.__name__
        self.counts[name] = self.counts.get(name, 0) + 1
        return func(*args, **(kwargs or {}))


opt = torch.optim.SGD(model.parameters(), lr=0.01, foreach=False)
total = {}
for epoch in range(EPOCHS):
    for i in range(STEPS):
        opt.zero_grad()
        with Count() as count:
            loss = F.mse_loss(model(inputs[i]), inputs[i])
        loss.backward()
        opt.step()
        total = {k: total.get(k, 0) + v for k, v in count.counts.items()}
    mark()
print(loss.item(), sorted(total.items()))

# %% flop_counter_mode
from torch.utils.flop_counter import FlopCounterMode

flops = 0
for epoch in range(EPOCHS):
    for i in range(STEPS):
        if i == 0:
            counter = FlopCounterMode(display=False)
            with counter:
                loss = F.mse_loss(model(inputs[i]), inputs[i])
                loss.backward()
            flops += counter.get_total_flops()
        else:
            F.mse_loss(model(inputs[i]), inputs[i]).backward()
        with torch.no_grad():
            for p in model.parameters():
                p -= 0.01 * p.grad
                p.grad = None
    mark()
print(flops, loss.item())

# %% parameter_subclass
class Bounded(nn.Parameter):
    @staticmethod
    def __new__(cls, data, limit=1.0):
        self = torch.Tensor._make_subclass(cls, data, True)
        self.limit = limit
        return self

    @torch.no_grad()
    def clip(self):
        self.clamp_(-self.limit, self.limit)


class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.w, self.b = Bounded(torch.randn(8, 8) * 0.3, 0.4), nn.Parameter(torch.zeros(8))

    def forward(self, x):
        return x @ self.w + self.b


net = Layer()
opt = torch.optim.SGD(net.parameters(), lr=0.02)
for epoch in range(EPOCHS):
    for t in inputs:
        opt.zero_grad()
        loss = F.mse_loss(net(t), t.flip(1))
        loss.backward()
        opt.step()
        net.w.clip()
    mark()
print(loss.item(), type(net.w).__name__, net.w.abs().max().item())

# %% device_context_and_default_type
torch.set_default_dtype(torch.float64)
with torch.device("meta"):
    skeleton = nn.Linear(8, 8)
skeleton = skeleton.to_empty(device="cpu")
with torch.no_grad():
    skeleton.weight.copy_(torch.eye(8) * 0.5), skeleton.bias.zero_()
for epoch in range(EPOCHS):
    for i in range(STEPS):
        with torch.device("cpu"), torch.no_grad():
            noise = torch.ones(8) * (i / STEPS) + torch.arange(8.0)
            x = torch.tanh(skeleton(x.double()) + torch.sin(noise) + inputs[i])
    mark()
print(x.sum().item(), x.dtype, noise.device, torch.get_default_dtype())
torch.set_default_dtype(torch.float32)

# %% deterministic_and_other_flags
torch.use_deterministic_algorithms(True)
torch.set_num_threads(1)
torch.set_float32_matmul_precision("high")
index = torch.tensor([0, 1, 1, 3])
for epoch in range(EPOCHS):
    for i in range(STEPS):
        with torch.no_grad(), torch.autograd.profiler.record_function("step"):
            y = torch.zeros(5, 8).index_add_(0, index, model(x))
            z = torch.zeros(5, 8).index_put_((index,), x, accumulate=True)
            x = torch.tanh(y[:4] + 0.5 * z[1:] + inputs[i])
    mark()
print(x.sum().item(), torch.are_deterministic_algorithms_enabled(), torch.get_num_threads())

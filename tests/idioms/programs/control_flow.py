# The Python around tensors: branches, loops, functions, classes and containers.
import contextlib
import copy
import functools
import itertools
import operator
from collections import Counter, OrderedDict, defaultdict, deque, namedtuple
from dataclasses import dataclass, field
from enum import Enum

model = nn.Sequential(nn.Linear(8, 16), nn.Tanh(), nn.Linear(16, 8))
opt = torch.optim.SGD(model.parameters(), lr=0.02)
inputs = torch.randn(STEPS, 4, 8)
x = torch.zeros(4, 8)

# %% branch_on_loss
good = bad = 0
for epoch in range(EPOCHS):
    for i in range(STEPS):
        loss = F.mse_loss(model(inputs[i]), inputs[i])
        opt.zero_grad()
        if loss.item() > 0.6:
            loss.backward()
            opt.step()
            bad += 1
        elif loss < 0.5:
            good += 1
        else:
            (0.5 * loss).backward()
            opt.step()
    mark()
print(good, bad, loss.item())

# %% while_until_converged
iterations = []
for epoch in range(EPOCHS):
    for i in range(STEPS):
        z, n = torch.zeros(4, 8), 0
        with torch.no_grad():
            while n < 12:
                new = 0.5 * torch.tanh(model(z) + inputs[i])
                n += 1
                if (new - z).norm() < 0.004 * new.norm():
                    break
                z = new
            else:
                n = -1
        iterations.append(n)
    mark()
print(z.sum().item(), len(iterations), Counter(iterations).most_common(3))

# %% early_stopping_patience
best, patience, waited, stopped = float("inf"), 120, 0, None
for epoch in range(EPOCHS):
    for i in range(STEPS):
        if stopped is not None:
            with torch.no_grad():
                x = model(inputs[i] + 0.1 * torch.sin(x))
                loss = F.mse_loss(x, inputs[i])
            continue
        loss = F.mse_loss(model(inputs[i]), inputs[i])
        opt.zero_grad()
        loss.backward()
        opt.step()
        if loss.item() < 0.5 * best:
            best, waited = loss.item(), 0
        elif (waited := waited + 1) >= patience:
            stopped = epoch, i
    mark()
print(best, stopped, loss.item())

# %% dynamic_depth_over_modules
class Exit(nn.Module):
    def __init__(self):
        super().__init__()
        self.blocks = nn.ModuleList(nn.Linear(8, 8) for _ in range(4))
        self.gates = nn.ModuleList(nn.Linear(8, 1) for _ in self.blocks)
        self.depths = Counter()

    def forward(self, x):
        for depth, (block, gate) in enumerate(zip(self.blocks, self.gates), start=1):
            x = torch.relu(block(x)) + x
            if gate(x).mean() > 0.2:
                break
        self.depths[depth] += 1
        return x


net = Exit().eval()
with torch.no_grad():
    for epoch in range(EPOCHS):
        for i in range(STEPS):
            x = torch.tanh(net(inputs[i]) + 0.1 * x)
        mark()
print(x.sum().item(), sum(net.depths.values()), sorted(net.depths.items()))

# %% map_filter_reduce_any_all
layers = [nn.Linear(8, 8) for _ in range(3)]
dims = 0
for epoch in range(EPOCHS):
    for i in range(STEPS):
        with torch.no_grad():
            y = functools.reduce(lambda h, f: torch.tanh(f(h)), layers, inputs[i])
            parts = list(filter(lambda r: r[1] > r[0], y + inputs[i]))
            x = sum(map(torch.square, parts), start=torch.zeros(8))
            x = x + functools.reduce(operator.mul, y)
        if any(p[0] > 0.9 for p in parts) or not all(p.numel() == 8 for p in parts):
            x = -x
        dims += len(parts)
        inputs[i, 0] = torch.sin(x + inputs[i, 1])
    mark()
print(x.sum().item(), dims, max(y, key=lambda r: r[0].item()).shape)

# %% sorted_and_min_by_key
def score(item):
    return item[1].item()


for epoch in range(EPOCHS):
    for i in range(STEPS):
        with torch.no_grad():
            named = {f"row{k}": row.norm() for k, row in enumerate(model(inputs[i] + x))}
        order = sorted(named.items(), key=score, reverse=True)
        low = min(named, key=named.get)
        (first, a), *middle, (last, b) = order
        assert low == last
        x = torch.sin(x * 0.5 + (a - b) * torch.ones(4, 8) + len(middle))
    mark()
print(first, low, a.item(), x.sum().item())

# %% comprehensions_of_tensors
for epoch in range(EPOCHS):
    for i in range(STEPS):
        rows = [torch.cos(row) * k for k, row in enumerate(inputs[i], 1) if k != 2]
        table = {k: r.mean() for k, r in enumerate(rows)}
        grid = [[(a * b).sum() for b in rows] for a in rows]
        size = len({tuple(r.shape) for r in rows})
        gram = torch.stack([torch.stack(line) for line in grid])
        x = 0.5 * x + torch.tanh(gram.sum() * 0.01 + sum(table.values()) / size)
    mark()
print(x[0, 0].item(), gram.shape, size)

# %% generator_pipeline
def source(n):
    for k in range(n):
        yield inputs[k]


def normalized(batches):
    for batch in batches:
        yield (batch - batch.mean()) / batch.std()


def windows(batches, size=2):
    recent = []
    for batch in batches:
        recent.append(batch)
        if len(recent) == size:
            yield torch.cat(recent, dim=1)
            recent = recent[1:]


total, head = 0.0, nn.Linear(16, 1)
for epoch in range(EPOCHS):
    for pair in windows(normalized(source(STEPS))):
        with torch.no_grad():
            total += torch.sigmoid(head(pair)).sum().item()
    mark()
print(total, pair.shape)

# %% generator_send_and_yield_from
def averager(decay):
    mean = None
    while True:
        value = yield mean
        mean = value if mean is None else decay * mean + (1 - decay) * value


def both(*generators):
    yield from itertools.chain(*generators)


mean = averager(0.9)
next(mean)
for epoch in range(EPOCHS):
    for batch in both(iter(inputs[:25]), (-b for b in inputs[25:])):
        with torch.no_grad():
            x = mean.send(model(batch + 0.1 * x))
    mark()
print(x.sum().item(), type(mean).__name__)

# %% recursion_over_trees
leaf = nn.Embedding(6, 8)
join = nn.Linear(16, 8)
trees = [(0, (1, 2)), ((3, 4), (5, (0, 1))), 3, (((1, 2), 3), 4)]
opt = torch.optim.SGD([*leaf.parameters(), *join.parameters()], lr=0.02)


def encode(tree):
    if isinstance(tree, int):
        return leaf(torch.tensor(tree))
    left, right = tree
    return torch.tanh(join(torch.cat([encode(left), encode(right)])))


for epoch in range(EPOCHS):
    for i in range(STEPS):
        root = encode(trees[i % len(trees)])
        loss = (root - inputs[i % len(trees), 0]).pow(2).mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
    mark()
print(loss.item(), root.shape)

# %% closures_with_nonlocal
def make_stepper(rate):
    count, velocity = 0, [torch.zeros_like(p) for p in model.parameters()]

    def step(batch):
        nonlocal count
        count += 1
        loss = F.mse_loss(model(batch), batch)
        grads = torch.autograd.grad(loss, list(model.parameters()))
        with torch.no_grad():
            for p, v, g in zip(model.parameters(), velocity, grads):
                v.mul_(0.5).add_(g)
                p.sub_(rate / (1 + 0.001 * count) * v)
        return loss

    step.count = lambda: count
    return step


step = make_stepper(0.02)
for epoch in range(EPOCHS):
    losses = [step(batch).item() for batch in inputs]
    mark()
print(losses[-1], step.count())

# %% decorators_count_and_cast
def counted(f):
    @functools.wraps(f)
    def wrapper(*args, **kwargs):
        wrapper.calls += 1
        return f(*args, **kwargs)
    wrapper.calls = 0
    return wrapper


def scaled(by):
    return lambda f: lambda *args: by * f(*args)


@counted
@scaled(by=0.5)
def update(x, batch):
    with torch.no_grad():
        return torch.tanh(model(x) + batch) - x


for epoch in range(EPOCHS):
    for batch in inputs:
        x = x + update(x, batch)
    mark()
print(x.sum().item(), update.calls)

# %% partial_cache_singledispatch
@functools.lru_cache(maxsize=None)
def mask(n):
    return torch.tril(torch.ones(n, n)) / torch.arange(1, n + 1).unsqueeze(1)


@functools.singledispatch
def apply(what, x):
    return what * x


@apply.register
def _(what: nn.Module, x):
    return what(x)


act = functools.partial(F.leaky_relu, negative_slope=0.2)
for epoch in range(EPOCHS):
    for i in range(STEPS):
        with torch.no_grad():
            y = apply(0.5, apply(model, inputs[i]))
            x[:i % 4 + 1] = act(mask(i % 4 + 1) @ y[:i % 4 + 1])
    mark()
print(x.sum().item(), mask.cache_info().hits)

# %% context_managers
class Timer:
    def __init__(self, log):
        self.log = log

    def __enter__(self):
        self.log["entered"] += 1
        return self

    def __exit__(self, kind, value, trace):
        self.log["left"] += 1
        return kind is ArithmeticError


@contextlib.contextmanager
def evaluating(net):
    was = net.training
    net.eval()
    try:
        yield net
    finally:
        net.train(was)


log = Counter()
for epoch in range(EPOCHS):
    for i in range(STEPS):
        with Timer(log), evaluating(model) as net, torch.no_grad():
            x = torch.sin(net(inputs[i]) + x)
    mark()
print(x.sum().item(), log, model.training)

# %% try_finally_else
class Overflow(ArithmeticError):
    def __init__(self, size):
        super().__init__(f"size {size:.1f}")
        self.size = size


counts = defaultdict(int)
for epoch in range(EPOCHS):
    for i in range(STEPS):
        try:
            y = x + F.layer_norm(inputs[i], (8,), weight=model[0].bias.detach()[:8])
            if i % 7 == 3:
                raise Overflow(y.abs().max().item())
            if i % 11 == 5:
                y = {}["missing"]
        except Overflow as error:
            y = y / (1 + error.size)
            counts[type(error).__name__] += 1
        except (KeyError, ValueError):
            counts["key"] += 1
        else:
            counts["fine"] += 1
        finally:
            with torch.no_grad():
                x = torch.sin(y) + model(y.softmax(1)) * y.cumsum(0)
    mark()
print(x.sum().item(), dict(counts))

# %% match_statement
net = nn.ModuleList([nn.Linear(8, 8), nn.ReLU(), nn.LayerNorm(8)])
plan = [("layer", 0), "relu", {"op": "scale", "by": 0.5}, ("layer", 2), None]


def run(x, instruction):
    match instruction:
        case ("layer", index) if index < len(net):
            return net[index](x)
        case "relu" | "rectify":
            return torch.relu(x)
        case {"op": "scale", "by": float(by)}:
            return x * by
        case _:
            return torch.sin(x)


for epoch in range(EPOCHS):
    for batch in inputs:
        with torch.no_grad():
            for instruction in plan:
                batch = run(batch, instruction)
            x = 0.5 * x + batch
    mark()
print(x.sum().item(), x.std().item())

# %% dataclass_config_and_state
@dataclass
class Config:
    lr: float = 0.02
    betas: tuple = (0.9, 0.99)


@dataclass
class State:
    config: Config
    step: int = 0
    moments: dict = field(default_factory=dict)

    def update(self, p):
        b1, b2 = self.config.betas
        m = self.moments.setdefault(id(p), torch.zeros_like(p))
        m.mul_(b1).add_(p.grad, alpha=1 - b1)
        p.data.add_(m / (1 - b1 ** self.step), alpha=-self.config.lr)


state = State(Config(lr=0.03))
for epoch in range(EPOCHS):
    for batch in inputs:
        state.step += 1
        loss = F.mse_loss(model(batch), batch)
        model.zero_grad()
        loss.backward()
        for p in model.parameters():
            state.update(p)
    mark()
print(loss.item(), state.step, state.config)

# %% namedtuple_results
Output = namedtuple("Output", ["logits", "hidden", "loss"], defaults=[None])


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body, self.head = nn.GRUCell(8, 12), nn.Linear(12, 8)

    def forward(self, x, hidden, target=None):
        hidden = self.body(x, hidden)
        out = Output(self.head(hidden), hidden)
        return out if target is None else out._replace(loss=F.mse_loss(out.logits, target))


net, out = Net(), Output(None, torch.zeros(4, 12))
opt = torch.optim.SGD(net.parameters(), lr=0.02)
for epoch in range(EPOCHS):
    for i in range(STEPS):
        out = net(inputs[i], out.hidden.detach(), target=inputs[i - 1])
        opt.zero_grad()
        out.loss.backward()
        opt.step()
    mark()
print(out.loss.item(), out._fields, out.hidden.sum().item())

# %% enums_and_phases
class Phase(Enum):
    WARMUP = 0.001
    TRAIN = 0.02
    REST = 0.0

    @classmethod
    def at(cls, step):
        return cls.WARMUP if step < 100 else cls.TRAIN if step < 400 else cls.REST


tally = Counter()
for epoch in range(EPOCHS):
    for i, batch in enumerate(inputs):
        phase = Phase.at(epoch * STEPS + i)
        tally[phase.name] += 1
        loss = F.l1_loss(model(batch), batch)
        if phase is Phase.REST:
            continue
        opt.param_groups[0]["lr"] = phase.value
        opt.zero_grad()
        loss.backward()
        opt.step()
    mark()
print(loss.item(), tally.most_common())

# %% properties_getattr_slots
class Meter:
    __slots__ = ("total", "count")

    def __init__(self):
        self.total, self.count = torch.zeros(()), 0

    @property
    def mean(self):
        return self.total / max(self.count, 1)


class Wrapper:
    created = 0

    def __init__(self, net):
        type(self).created += 1
        self._net, self.meter = net, Meter()

    def __call__(self, x):
        self.meter.count += len(x)
        return self._net(x)

    def __getattr__(self, name):
        return getattr(self._net, name)


for epoch in range(EPOCHS):
    net = Wrapper(model)
    for batch in inputs:
        with torch.no_grad():
            batch = torch.tanh(net(batch))
            net.meter.total += net(batch).pow(2).sum() + net.get_submodule("0").bias.sum()
    mark()
print(net.meter.mean, Wrapper.created, net.training, len(list(net.parameters())))

# %% global_state_and_registry
REGISTRY, step_count = OrderedDict(), 0


def register(cls):
    REGISTRY[cls.__name__.lower()] = cls
    return cls


@register
class Shift:
    def __call__(self, x):
        return x.roll(1, -1)


@register
class Squash:
    scale = 0.5

    def __call__(self, x):
        global step_count
        step_count += 1
        return torch.tanh(self.scale * x)


transforms = [REGISTRY[name]() for name in ("squash", "shift", "squash") * 3]
for epoch in range(EPOCHS):
    for batch in inputs:
        for transform in transforms:
            batch = transform(batch)
        x = torch.sin(x + batch)
    mark()
print(x.sum().item(), step_count, list(REGISTRY))

# %% deque_counter_defaultdict
recent, groups, words = deque(maxlen=5), defaultdict(list), Counter()
for epoch in range(EPOCHS):
    groups.clear()
    for i in range(STEPS):
        with torch.no_grad():
            y = model(inputs[i] + x)
        recent.append(y.mean(0))
        groups[i % 3].append(y.norm())
        words[f"bin{i % 4}"] += 1
        x = torch.tanh(torch.stack(list(recent)).mean(0) - recent[0] + x * 0.5)
    sums = {k: torch.stack(v).sum().item() for k, v in groups.items()}
    mark()
print(sums, len(recent), words.most_common(2))

# %% itertools_and_sets
names, pairs = set(), 0
for epoch in range(EPOCHS):
    cycle = itertools.cycle(("a", "b", "c"))
    for (i, batch), name in zip(enumerate(itertools.islice(inputs, STEPS)), cycle):
        total = torch.zeros(())
        for u, v in itertools.combinations(batch, 2):
            total = total + torch.dot(u, v) / 8
            pairs += 1
        for k, (a, b) in enumerate(itertools.product((0.1, 0.2), (1, -1))):
            x[k] = torch.sin(x[k] + a * total * b + batch[k])
        names |= {f"{name}{i % 2}"}
    mark()
print(x.sum().item(), pairs, sorted(names - {"a0"}), x[1].tolist())

# %% star_args_and_merged_dicts
DEFAULTS = {"scale": 0.5, "bias": 0.0}


def mix(*tensors, scale=1.0, bias=0.0, **others):
    first, *rest = tensors
    y = scale * first + bias
    for weight, t in zip(others.values(), rest):
        y = y + weight * t
    return torch.tanh(y), {"n": len(tensors), **others}


for epoch in range(EPOCHS):
    for i in range(STEPS):
        options = DEFAULTS | {"bias": 0.1 * (i % 3)}
        options.update(w=0.2, **({"z": -0.1} if i % 2 else {}))
        x, info = mix(x, *inputs[i:i + 3], **options)
        y, _ = mix(x.t(), x.roll(1, 0).t(), *(), **DEFAULTS, w=torch.ones(8, 1))
        x = torch.sin(x + y.t() * x.mean(0))
    mark()
print(x.sum().item(), info)

# %% callbacks_isinstance_dispatch
class Callback:
    def on_step(self, step, loss):
        pass


class Recorder(Callback):
    def __init__(self):
        self.losses = []

    def on_step(self, step, loss):
        if step % 10 == 0:
            self.losses.append(loss.item())


callbacks = [Callback(), recorder := Recorder(), lambda step, loss: loss.detach() * 0]
for epoch in range(EPOCHS):
    for i, batch in enumerate(inputs):
        loss = F.mse_loss(model(batch), batch)
        opt.zero_grad()
        loss.backward()
        opt.step()
        for callback in callbacks:
            if isinstance(callback, Callback):
                callback.on_step(i, loss)
            elif callable(callback):
                callback(i, loss)
    mark()
print(recorder.losses[::10], len(recorder.losses))

# %% dunder_arithmetic
class Dual:
    def __init__(self, value, slope):
        self.value, self.slope = value, slope

    def __add__(self, other):
        return Dual(self.value + other.value, self.slope + other.slope)

    def __mul__(self, other):
        if not isinstance(other, Dual):
            return Dual(self.value * other, self.slope * other)
        return Dual(self.value * other.value, self.slope * other.value + self.value * other.slope)

    __rmul__ = __mul__

    def tanh(self):
        t = torch.tanh(self.value)
        return Dual(t, self.slope * (1 - t * t))


w = Dual(torch.ones(4, 8), torch.ones(4, 8))
for epoch in range(EPOCHS):
    for batch in inputs:
        y = (w * Dual(batch, 0 * batch) + 0.5 * w).tanh() * w
        w = (y + Dual(batch, 1 + 0 * batch)) * 0.1 + w * 0.5
    mark()
print(w.value.sum().item(), w.slope.sum().item())

# %% deepcopy_of_model_in_loop
best, best_loss, saves = None, float("inf"), 0
for epoch in range(EPOCHS):
    for i, batch in enumerate(inputs):
        loss = F.mse_loss(model(batch), batch)
        opt.zero_grad()
        loss.backward()
        opt.step()
        if i % 10 == 9 and loss < best_loss:
            best, best_loss = copy.deepcopy(model), loss.detach()
            saves += 1
    mark()
with torch.no_grad():
    print(best_loss, saves > 0, F.mse_loss(best(inputs[0]), inputs[0]))

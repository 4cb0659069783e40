# torch.compile and the hints around it. Python takes the backend that needs no C++ compiler, dynvm the one that scripts have when they name none. The last program names its own.
import os

BACKEND = os.environ.get("DYNVM_IDIOM_BACKEND", "inductor")
model = nn.Sequential(nn.Linear(8, 16), nn.GELU(), nn.Linear(16, 8))
opt = torch.optim.SGD(model.parameters(), lr=0.02)
inputs = torch.randn(STEPS, 4, 8)
x = torch.zeros(4, 8)

# %% decorated_function
@torch.compile(backend=BACKEND)
def step(x, y):
    a = torch.sin(x) + torch.cos(y)
    if a.shape[0] > 2:
        a = a * 0.5
    b = F.layer_norm(a, (8,)) @ model[0].weight.detach().t()
    return torch.tanh(a + x.mean() + b[:, :8] * b[:, 8:])


for epoch in range(EPOCHS):
    for batch in inputs:
        x = step(x, batch)
    mark()
print(x.sum().item())

# %% compiled_module_training
net = torch.compile(model, backend=BACKEND)
for epoch in range(EPOCHS):
    for batch in inputs:
        opt.zero_grad()
        loss = F.mse_loss(net(batch), batch)
        loss.backward()
        opt.step()
    mark()
print(loss.item(), type(net).__name__, len(list(net.parameters())))

# %% module_compile_in_place
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body, self.scale = model, nn.Parameter(torch.ones(8))
        self.calls = 0

    def forward(self, x):
        return self.body(x) * self.scale + x


net = Net()
net.compile(backend=BACKEND)
for epoch in range(EPOCHS):
    for batch in inputs:
        with torch.no_grad():
            x = torch.tanh(net(batch + 0.1 * x))
    mark()
print(x.sum().item(), type(net).__name__)

# %% compiled_method_fullgraph
class Filter:
    def __init__(self, decay):
        self.decay, self.state = decay, torch.zeros(4, 8)

    @torch.compile(backend=BACKEND, fullgraph=True)
    def blend(self, batch):
        score = torch.softmax(batch @ self.state.t(), dim=-1)
        return self.decay * self.state + (1 - self.decay) * torch.relu(score @ batch + batch)

    def __call__(self, batch):
        self.state = self.blend(batch)
        return self.state.norm(dim=1)


smooth = Filter(0.9)
for epoch in range(EPOCHS):
    for batch in inputs:
        sizes = smooth(batch)
    mark()
print(sizes, smooth.state.sum().item())

# %% dynamic_sizes_and_mode
@torch.compile(backend=BACKEND, dynamic=True)
def pool(rows):
    weights = torch.softmax(rows.sum(-1), dim=0)
    return (weights[:, None] * rows).sum(0) / rows.size(0) ** 0.5


reduce = torch.compile(lambda a, b: (a - b).abs().sum(), backend=BACKEND, mode="default")
total = 0.0
for epoch in range(EPOCHS):
    for i in range(STEPS):
        rows = inputs[i, :2 + i % 3]
        total += reduce(pool(rows), pool(rows.flip(0) * 0.5)).item()
    mark()
print(total)

# %% disabled_parts
log = []


@torch.compiler.disable
def remember(x):
    log.append(round(x.mean().item(), 3))
    return x + 0.0


@torch.compile(backend=BACKEND)
def step(x, batch):
    y = torch.tanh(x + batch)
    y = remember(y)
    return y * 0.5 + x * 0.1


for epoch in range(EPOCHS):
    for batch in inputs:
        x = step(x, batch)
    mark()
print(x.sum().item(), len(log), log[-1])

# %% is_compiling_branches
def activation(x):
    if torch.compiler.is_compiling() or torch.compiler.is_dynamo_compiling():
        return F.gelu(x, approximate="none")
    return F.gelu(x)


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(8, 8)

    def forward(self, x):
        return x + activation(self.fc(x))


blocks = nn.ModuleList(Block() for _ in range(2))
fast = [torch.compile(block, backend=BACKEND) for block in blocks]
for epoch in range(EPOCHS):
    for batch in inputs:
        with torch.inference_mode():
            a = fast[0](batch + 0.1 * x)
            x = torch.tanh(fast[1](a) - blocks[1](batch))
    mark()
print(x.sum().item(), torch.compiler.is_compiling())

# %% cond_operator
def positive(x):
    return torch.sin(x) + 0.1


def negative(x):
    return torch.cos(x) - 0.2


def step(x, batch):
    y = x + batch
    return torch.cond(y.sum() > 0, positive, negative, (y,))


compiled = torch.compile(step, backend=BACKEND)
for epoch in range(EPOCHS):
    for i, batch in enumerate(inputs):
        x = compiled(x, batch)
    mark()
print(x.sum().item(), x.shape)

# %% nested_compiled_functions
@torch.compile(backend=BACKEND)
def inner(x, scale=1.0):
    return torch.tanh(x) * scale


@torch.compile(backend=BACKEND)
def loss_of(batch):
    h = inner(model[0](batch), scale=0.9)
    return F.mse_loss(model[2](inner(h)), batch)


for epoch in range(EPOCHS):
    for batch in inputs:
        loss = loss_of(batch)
        grads = torch.autograd.grad(loss, list(model.parameters()))
        with torch.no_grad():
            torch._foreach_add_(list(model.parameters()), grads, alpha=-0.02)
    mark()
print(loss.item(), sum(p.sum().item() for p in model.parameters()))

# %% optional_by_setting_with_graph_break
backend = os.environ.get("MY_PROGRAM_BACKEND", "eager")


def maybe_compile(f):
    return torch.compile(f, backend=backend) if backend != "none" else f


@maybe_compile
def train_step(batch, verbose=False):
    loss = F.smooth_l1_loss(model(batch), batch.roll(1, 0))
    if verbose:
        print("verbose", batch.shape)
    return loss


for epoch in range(EPOCHS):
    for i, batch in enumerate(inputs):
        loss = train_step(batch, verbose=(epoch, i) == (1, 0))
        opt.zero_grad()
        loss.backward()
        opt.step()
    mark()
print(loss.item())

# Mixed precision: autocast, gradient scaling, and types changed by hand.
model = nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.LayerNorm(32), nn.Linear(32, 4))
opt = torch.optim.SGD(model.parameters(), lr=0.01)
inputs, targets = torch.randn(STEPS, 8, 16), torch.randn(STEPS, 8, 4)


def show(value):
    return f"{value.item():.2f}"

# %% autocast_bf16_training
for epoch in range(EPOCHS):
    total = 0.0
    for x, t in zip(inputs, targets):
        opt.zero_grad()
        with torch.autocast(device_type="cpu", dtype=torch.bfloat16):
            y = model(x)
            loss = F.mse_loss(y.float(), t)
        loss.backward()
        opt.step()
        total += loss.item()
    mark()
print(f"{total / STEPS:.2f}", y.dtype, model[0].weight.dtype)

# %% grad_scaler_on_cpu
scaler = torch.amp.GradScaler("cpu", init_scale=2.0 ** 8, growth_interval=100)
for epoch in range(EPOCHS):
    for i in range(STEPS):
        opt.zero_grad(set_to_none=True)
        with torch.autocast("cpu", torch.bfloat16, enabled=i % 2 == 0):
            loss = F.l1_loss(model(inputs[i]).float(), targets[i])
        scaler.scale(loss).backward()
        scaler.unscale_(opt)
        norm = torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        scaler.step(opt)
        scaler.update()
    mark()
print(show(loss), torch.isfinite(norm).item(), scaler.get_scale())

# %% half_weights_inference
class Quick(nn.Module):
    def __init__(self, net):
        super().__init__()
        self.net = net.to(torch.bfloat16)

    def forward(self, x):
        return self.net(x.to(self.net[0].weight.dtype)).to(x.dtype)


net, counts = Quick(model), {}
for epoch in range(EPOCHS):
    for x in inputs:
        with torch.no_grad():
            y = net(x)
        counts[y.dtype] = counts.get(y.dtype, 0) + len(y)
    mark()
print(counts, show(y.abs().mean()), next(net.parameters()).dtype)

# %% nested_autocast_regions
def head(x):
    with torch.autocast("cpu", enabled=False):
        return torch.softmax(x.float(), dim=-1).log()


dtypes = set()
for epoch in range(EPOCHS):
    for x in inputs:
        with torch.no_grad(), torch.autocast("cpu", dtype=torch.bfloat16):
            h = model[:3](x)
            dtypes.add((torch.get_autocast_dtype("cpu"), torch.is_autocast_enabled("cpu")))
            y = head(model[3](h))
            z = (y @ y.T).dtype
    mark()
print(y.dtype, z, dtypes, show(y.exp().sum()))

# %% autocast_as_decorator
@torch.autocast(device_type="cpu", dtype=torch.bfloat16)
def predict(x, w):
    return torch.addmm(x[:, :4], x, w), x @ w, x.exp().sum()


w = torch.randn(16, 4) / 4
for epoch in range(EPOCHS):
    for i in range(STEPS):
        a, b, c = predict(inputs[i], w)
        w = torch.tanh(w + 0.01 * (a + b).float().mean(0))
    mark()
print(a.dtype, b.dtype, c.dtype, w.dtype, show(w.abs().mean()))

# %% master_weights_by_hand
half = [p.detach().half().requires_grad_() for p in model.parameters()]
names = [name for name, _ in model.named_parameters()]
scale = 128.0
for epoch in range(EPOCHS):
    for x, t in zip(inputs, targets):
        y = torch.func.functional_call(model.half(), dict(zip(names, half)), (x.half(),))
        loss = F.mse_loss(y.float(), t)
        grads = torch.autograd.grad(loss * scale, half)
        with torch.no_grad():
            for p, g in zip(half, grads):
                p.copy_(p.float() - 0.01 * g.float() / scale)
    mark()
print(show(loss), {p.dtype for p in half}, sum(p.numel() for p in half))

# %% double_for_accuracy
precise = nn.Linear(16, 4).double()
total = torch.zeros(4, dtype=torch.float64)
for epoch in range(EPOCHS):
    for x in inputs:
        with torch.no_grad():
            y = precise(x.to(torch.float64))
            total += y.sum(0) - x[:, :4].sum(0)
            low = y.to(dtype=torch.float32).type(torch.bfloat16)
    mark()
print(total.tolist(), low.dtype, (y.float().double() - y).abs().max().item() < 1e-6)

# %% mixed_types_promote
a, b = torch.randn(8, 8), torch.randn(8, 8, dtype=torch.float64)
h, n = torch.randn(8, 8).bfloat16(), torch.arange(64).view(8, 8)
found = []
for epoch in range(EPOCHS):
    for i in range(STEPS):
        mixed = [a * b, a + h, h + n, n / 2, n // 3, a * 2, n * 1.5, h * i, n > a]
        mixed.append(torch.where(n > 9, a, b))
        a = torch.sin(a + 0.01 * mixed[0].float() + mixed[9].float())
        found = [each.dtype for each in mixed]
    mark()
print(*found)
print(a.sum().item())

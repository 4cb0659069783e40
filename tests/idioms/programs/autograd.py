# Autograd: gradients asked for, hooked, cut, kept, accumulated and taken twice.
from torch.utils.checkpoint import checkpoint

model = nn.Sequential(nn.Linear(6, 16), nn.Tanh(), nn.Linear(16, 3))
opt = torch.optim.SGD(model.parameters(), lr=0.02)
inputs, targets = torch.randn(STEPS, 5, 6), torch.randn(STEPS, 5, 3)

# %% grad_of_inputs
saliency = torch.zeros(6)
for epoch in range(EPOCHS):
    for x in inputs:
        x = x.clone().requires_grad_(True)
        score = model(x).max(dim=1).values.sum()
        gradient, = torch.autograd.grad(score, x)
        saliency += gradient.abs().mean(0)
    mark()
print(saliency, x.grad, x.is_leaf)

# %% gradient_penalty
critic = nn.Sequential(nn.Linear(6, 16), nn.Softplus(), nn.Linear(16, 1))
opt = torch.optim.Adam(critic.parameters(), lr=1e-3, betas=(0.5, 0.9))


def penalty(real, fake, alpha):
    mixed = (alpha * real + (1 - alpha) * fake).requires_grad_(True)
    scores = critic(mixed)
    g = torch.autograd.grad(scores, mixed, torch.ones_like(scores), create_graph=True,
                            retain_graph=True)[0]
    return ((g.norm(2, dim=1) - 1) ** 2).mean()


for epoch in range(EPOCHS):
    for i in range(STEPS):
        real, fake = inputs[i], inputs[i - 1] + 1.0
        loss = critic(fake).mean() - critic(real).mean() + 10 * penalty(real, fake, i / STEPS)
        opt.zero_grad()
        loss.backward()
        opt.step()
    mark()
print(loss.item(), critic[0].weight.norm().item())

# %% tensor_hooks
seen = []
scale = {"now": 1.0}
h = model[0].weight.register_hook(lambda g: g * scale["now"])
for epoch in range(EPOCHS):
    for i, (x, t) in enumerate(zip(inputs, targets)):
        scale["now"] = 0.5 if i % 2 else 1.0
        hidden = model[:2](x)
        hidden.register_hook(lambda g: seen.append(g.norm().item()))
        loss = F.mse_loss(model[2](hidden), t)
        opt.zero_grad()
        loss.backward()
        opt.step()
    mark()
h.remove()
print(loss.item(), len(seen), sum(seen))

# %% forward_hooks_collect_features
features = {}


def keep(name):
    def hook(module, args, output):
        features[name] = output.detach()
    return hook


handles = [m.register_forward_hook(keep(name)) for name, m in model.named_children()]
for epoch in range(EPOCHS):
    for x in inputs:
        with torch.no_grad():
            model(torch.sin(x + inputs[0]))
        inputs[0] += 0.001 * features["1"][:, :6]
    mark()
for handle in handles:
    handle.remove()
print(sorted(features), [tuple(f.shape) for f in features.values()], features["2"].sum().item())

# %% full_backward_hooks
norms = {"in": 0.0, "out": 0.0}


def record(module, grad_input, grad_output):
    norms["in"] += grad_input[0].norm().item()
    norms["out"] += grad_output[0].norm().item()


model[2].register_full_backward_hook(record)
model.register_forward_pre_hook(lambda module, args: (args[0] * 0.5,))
for epoch in range(EPOCHS):
    for x, t in zip(inputs, targets):
        opt.zero_grad()
        loss = F.mse_loss(model(x), t)
        loss.backward()
        opt.step()
    mark()
print(loss.item(), norms)

# %% custom_function
class Swish(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, beta):
        s = torch.sigmoid(beta * x)
        ctx.save_for_backward(x, s)
        ctx.beta = beta
        return x * s

    @staticmethod
    def backward(ctx, grad):
        x, s = ctx.saved_tensors
        return grad * (s + ctx.beta * x * s * (1 - s)), None


swish = Swish.apply
for epoch in range(EPOCHS):
    for x, t in zip(inputs, targets):
        y = model[2](swish(model[0](x), 1.5))
        loss = F.mse_loss(y, t)
        opt.zero_grad()
        loss.backward()
        opt.step()
    mark()
print(loss.item(), y.sum().item())

# %% custom_function_setup_context
class Linear(torch.autograd.Function):
    @staticmethod
    def forward(x, w, b=None):
        return x @ w.t() if b is None else x @ w.t() + b

    @staticmethod
    def setup_context(ctx, args, output):
        x, w, b = args
        ctx.save_for_backward(x, w)
        ctx.has_bias = b is not None

    @staticmethod
    def backward(ctx, g):
        x, w = ctx.saved_tensors
        gx = g @ w if ctx.needs_input_grad[0] else None
        return gx, g.t() @ x, g.sum(0) if ctx.has_bias else None


for epoch in range(EPOCHS):
    for x, t in zip(inputs, targets):
        h = torch.tanh(Linear.apply(x, model[0].weight, None))
        loss = F.mse_loss(Linear.apply(h, model[2].weight, model[2].bias), t)
        opt.zero_grad()
        loss.backward()
        opt.step()
    mark()
print(loss.item(), model[0].bias.grad)

# %% checkpointed_blocks
class Deep(nn.Module):
    def __init__(self, n):
        super().__init__()
        self.blocks = nn.ModuleList(nn.Sequential(nn.Linear(6, 6), nn.GELU()) for _ in range(n))
        self.out = nn.Linear(6, 3)

    def forward(self, x):
        for block in self.blocks:
            x = x + checkpoint(block, x, use_reentrant=False)
        return self.out(x)


net = Deep(2)
opt = torch.optim.SGD(net.parameters(), lr=0.02)
for epoch in range(EPOCHS):
    for i in range(STEPS):
        opt.zero_grad()
        loss = F.mse_loss(net(inputs[i]), targets[i])
        loss.backward()
        opt.step()
    mark()
print(loss.item())

# %% detached_target_network
target_net = nn.Linear(6, 3)
for epoch in range(EPOCHS):
    for i in range(STEPS):
        x, after = inputs[i], inputs[(i + 1) % STEPS]
        goal = 0.1 * targets[i] + 0.9 * target_net(after).detach()
        loss = F.smooth_l1_loss(model(x), goal)
        opt.zero_grad()
        loss.backward()
        opt.step()
        if i % 10 == 9:
            target_net.weight.data.lerp_(model[2].weight.detach()[:, :6], 0.1)
    mark()
print(loss.item(), goal.requires_grad, target_net.weight.sum().item())

# %% accumulate_then_step
accumulation = 4
opt.zero_grad()
steps = 0
for epoch in range(EPOCHS):
    for i, (x, t) in enumerate(zip(inputs, targets), start=1):
        loss = F.mse_loss(model(x), t) / accumulation
        loss.backward()
        if i % accumulation == 0 or i == len(inputs):
            opt.step()
            opt.zero_grad()
            steps += 1
    mark()
print(loss.item() * accumulation, steps)

# %% retain_graph_two_losses
for epoch in range(EPOCHS):
    for x, t in zip(inputs, targets):
        opt.zero_grad()
        shared = model[:2](x)
        first = F.mse_loss(model[2](shared), t)
        second = shared.pow(2).mean()
        first.backward(retain_graph=True)
        before = model[0].weight.grad.clone()
        second.backward()
        ratio = (model[0].weight.grad - before).norm() / before.norm()
        opt.step()
    mark()
print(first.item(), second.item(), ratio.item())

# %% grad_modes_inside
@torch.no_grad()
def statistics(x):
    return x.mean(0), x.std(0)


flags = []
for epoch in range(EPOCHS):
    for i in range(STEPS):
        mean, std = statistics(inputs[i])
        x = (inputs[i] - mean) / std
        with torch.set_grad_enabled(i % 3 != 0):
            loss = F.mse_loss(model(x), targets[i])
        flags.append(loss.requires_grad)
        if loss.requires_grad:
            opt.zero_grad()
            loss.backward()
            opt.step()
    mark()
print(sum(flags), loss.item(), torch.is_grad_enabled())

# %% enable_grad_within_no_grad
def refine(y, t):
    with torch.enable_grad():
        y = y.detach().requires_grad_()
        energy = (y - t).pow(2).sum() + y.abs().sum()
        return y - 0.1 * torch.autograd.grad(energy, y)[0]


with torch.no_grad():
    for epoch in range(EPOCHS):
        for x, t in zip(inputs, targets):
            y = model(x)
            for _ in range(3):
                y = refine(y, t)
        mark()
print(y, y.requires_grad)

# %% inference_mode_evaluation
@torch.inference_mode()
def evaluate():
    return sum(F.mse_loss(model(x), t).item() for x, t in zip(inputs[:5], targets[:5])) / 5


losses = []
for epoch in range(EPOCHS):
    for i, (x, t) in enumerate(zip(inputs, targets)):
        opt.zero_grad()
        F.mse_loss(model(x), t).backward()
        opt.step()
        if i % 10 == 0:
            losses.append(evaluate())
    mark()
print(len(losses), losses[0], losses[-1])

# %% frozen_layers
for name, p in model.named_parameters():
    p.requires_grad = name.startswith("2")
opt = torch.optim.SGD(filter(lambda p: p.requires_grad, model.parameters()), lr=0.05)
for epoch in range(EPOCHS):
    if epoch == 6:
        model[0].requires_grad_(True)
        opt.add_param_group({"params": list(model[0].parameters()), "lr": 0.01})
    for x, t in zip(inputs, targets):
        opt.zero_grad()
        loss = F.mse_loss(model(x), t)
        loss.backward()
        opt.step()
    mark()
print(loss.item(), [p.grad is not None for p in model.parameters()])

# %% hessian_vector_product
params = list(model.parameters())
v = [torch.ones_like(p) for p in params]
for epoch in range(EPOCHS):
    for x, t in zip(inputs, targets):
        loss = F.mse_loss(model(x), t)
        grads = torch.autograd.grad(loss, params, create_graph=True)
        dot = sum((g * u).sum() for g, u in zip(grads, v))
        hv = torch.autograd.grad(dot, params)
        norm = torch.sqrt(sum(h.pow(2).sum() for h in hv)) + 1.0
        v = [0.5 * u + h / norm for u, h in zip(v, hv)]
    mark()
print(norm.item(), [round(u.norm().item(), 3) for u in v])

# %% backward_with_gradient
w = torch.randn(6, 4, requires_grad=True)
weights = torch.tensor([1.0, 0.1, 0.01, 2.0])
for epoch in range(EPOCHS):
    for x in inputs:
        y = torch.tanh(x @ w)
        y.backward(gradient=weights.expand_as(y) * y.detach())
        torch.autograd.backward([y.pow(2).sum() * 0.5 for y in [x @ w]], inputs=[w])
        w.data -= 0.002 * w.grad
        w.grad = None
    mark()
print(w.sum().item(), y.shape)

# %% several_weighted_losses
log_vars = nn.Parameter(torch.zeros(3))
opt = torch.optim.Adam([*model.parameters(), log_vars], lr=1e-3)
for epoch in range(EPOCHS):
    sums = [0.0, 0.0, 0.0]
    for x, t in zip(inputs, targets):
        y = model(x)
        parts = [F.mse_loss(y, t), (y.sum(1) - 1).abs().mean(), y.diff(dim=0).square().mean()]
        loss = sum(torch.exp(-s) * p + s for s, p in zip(log_vars, parts))
        opt.zero_grad()
        loss.backward()
        opt.step()
        sums = [s + p.item() for s, p in zip(sums, parts)]
    mark()
print(sums, log_vars.tolist())

# %% anomaly_mode
for epoch in range(EPOCHS):
    with torch.autograd.set_detect_anomaly(epoch % 2 == 1):
        for x, t in zip(inputs, targets):
            opt.zero_grad()
            loss = F.mse_loss(model(x), t)
            loss.backward()
            opt.step()
    mark()
print(loss.item(), torch.is_anomaly_enabled())

# %% saved_tensors_hooks
packed = 0


def pack(x):
    global packed
    packed += x.numel()
    return x if x.is_leaf else x.half()


def unpack(x):
    return x.float()


for epoch in range(EPOCHS):
    for x, t in zip(inputs, targets):
        with torch.autograd.graph.saved_tensors_hooks(pack, unpack):
            loss = (torch.sin(model(x)) - t).pow(2).mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
    mark()
print(f"{loss.item():.3f}", packed)

# %% straight_through_estimator
def quantize(x, levels=7):
    scaled = torch.tanh(x) * levels
    return (scaled + (torch.round(scaled) - scaled).detach()) / levels


for epoch in range(EPOCHS):
    for x, t in zip(inputs, targets):
        h = model[0](x)
        hard = (h > 0).float()
        gate = hard + torch.sigmoid(h) - torch.sigmoid(h).detach()
        loss = F.mse_loss(model[2](quantize(h) * gate), t)
        opt.zero_grad()
        loss.backward()
        opt.step()
    mark()
print(loss.item(), hard.mean().item())

# %% gradient_reversal
class Reverse(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, strength):
        ctx.strength = strength
        return x.view_as(x)

    @staticmethod
    def backward(ctx, grad_output):
        return grad_output.neg() * ctx.strength, None


domain = nn.Linear(16, 2)
opt.add_param_group({"params": domain.parameters()})
side = torch.tensor([0, 0, 1, 1, 0])
for epoch in range(EPOCHS):
    for i in range(STEPS):
        h = model[:2](inputs[i])
        strength = 0.5 * i / STEPS
        loss = F.mse_loss(model[2](h), targets[i])
        loss = loss + F.cross_entropy(domain(Reverse.apply(h, strength)), side)
        opt.zero_grad()
        loss.backward()
        opt.step()
    mark()
print(loss.item(), domain.bias.tolist())

# %% maml_inner_loop
w, b = torch.zeros(1, requires_grad=True), torch.zeros(1, requires_grad=True)
meta = torch.optim.Adam([w, b], lr=1e-2)
x = torch.linspace(-1, 1, 10)
for epoch in range(EPOCHS):
    for i in range(STEPS):
        meta_loss = 0.0
        for slope in (0.5 + 0.01 * i, 1.5):
            fast_w, fast_b = w, b
            for _ in range(2):
                inner = ((fast_w * x + fast_b - slope * x) ** 2).mean()
                gw, gb = torch.autograd.grad(inner, (fast_w, fast_b), create_graph=True)
                fast_w, fast_b = fast_w - 0.4 * gw, fast_b - 0.4 * gb
            meta_loss = meta_loss + ((fast_w * x + fast_b - slope * x) ** 2).mean()
        meta.zero_grad()
        meta_loss.backward()
        meta.step()
    mark()
print(meta_loss.item(), w.item())

# %% retain_grad_and_graph_walk
names = set()
total = 0.0
for epoch in range(EPOCHS):
    for x, t in zip(inputs, targets):
        h = model[0](x)
        h.retain_grad()
        loss = F.mse_loss(model[2](h.relu()), t)
        nodes = [loss.grad_fn]
        while nodes:
            node = nodes.pop()
            names.add(node.name())
            nodes += [each for each, _ in node.next_functions if each is not None]
        opt.zero_grad()
        loss.backward()
        total += h.grad.abs().sum().item()
        opt.step()
    mark()
print(total, sorted(names))

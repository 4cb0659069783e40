# torch.func: gradients and maps of functions, and modules called as functions.
from torch.func import (functional_call, functionalize, grad, grad_and_value, hessian, jacfwd,
                        jacrev, jvp, linearize, stack_module_state, vjp, vmap)

model = nn.Sequential(nn.Linear(4, 10), nn.Tanh(), nn.Linear(10, 1))
inputs, targets = torch.randn(STEPS, 6, 4), torch.randn(STEPS, 6, 1)
params = {name: p.detach().clone() for name, p in model.named_parameters()}


def loss_of(params, x, t):
    return F.mse_loss(functional_call(model, params, (x,)), t)

# %% grad_of_scalar_function
def f(w, x):
    return torch.sin(x @ w).sum() + 0.5 * (w ** 2).sum()


w = torch.ones(4)
gradient = grad(f)
for epoch in range(EPOCHS):
    for x in inputs:
        w = w - 0.01 * gradient(w, x)
    mark()
print(w.tolist(), f(w, inputs[0]).item())

# %% grad_and_value_training
step = grad_and_value(loss_of)
for epoch in range(EPOCHS):
    total = 0.0
    for x, t in zip(inputs, targets):
        grads, value = step(params, x, t)
        params = {name: p - 0.02 * grads[name] for name, p in params.items()}
        total += value.item()
    mark()
print(f"{total / STEPS:.5f}", params["0.bias"].sum().item())

# %% per_sample_gradients
def one(params, x, t):
    return loss_of(params, x.unsqueeze(0), t.unsqueeze(0))


per_sample = vmap(grad(one), in_dims=(None, 0, 0))
for epoch in range(EPOCHS):
    for i in range(STEPS):
        grads = per_sample(params, inputs[i], targets[i])
        norms = torch.stack([g.flatten(1).norm(dim=1) for g in grads.values()]).norm(dim=0)
        factor = (1.0 / (norms + 1e-6)).clamp(max=1.0)
        for name, g in grads.items():
            clipped = torch.einsum("n...,n->...", g, factor) / len(factor)
            params[name] = params[name] - 0.02 * clipped
    mark()
print(norms.mean().item(), params["2.weight"].sum().item())

# %% vmap_of_dot_products
batched = vmap(vmap(torch.dot, in_dims=(None, 0)), in_dims=(0, None))
a, b = torch.randn(5, 8), torch.randn(7, 8)
for epoch in range(EPOCHS):
    for i in range(STEPS):
        scores = batched(a, b)
        a = F.normalize(a + 0.1 * scores.softmax(1) @ b, dim=1)
    mark()
print(scores.shape, scores.sum().item())

# %% vmap_in_dims_out_dims
def affine(x, scale, shift, power):
    return {"y": (x * scale + shift) ** power, "s": x.sum()}


mapped = vmap(affine, in_dims=(1, 0, None, None), out_dims=0)
x, scales = torch.rand(6, 4), torch.linspace(0.5, 1.0, 4)
for epoch in range(EPOCHS):
    for i in range(STEPS):
        out = mapped(x, scales, torch.tensor(0.1), 2)
        x = torch.sigmoid(out["y"].t() - out["s"] / 6)
    mark()
print(out["y"].shape, x.sum().item(), out["s"].tolist())

# %% vmap_with_randomness
def noisy(x):
    return (x + 0.1 * torch.randn_like(x)).square().sum()


different = vmap(noisy, randomness="different")
same = vmap(noisy, randomness="same", chunk_size=None)
total = torch.zeros(2)
for epoch in range(EPOCHS):
    for x in inputs:
        total += torch.stack([different(x).mean(), same(x).mean()])
    mark()
print(total / (EPOCHS * STEPS))

# %% vjp_pullback
for epoch in range(EPOCHS):
    for x, t in zip(inputs, targets):
        y, pull = vjp(lambda p: functional_call(model, p, x), params)
        g, = pull((y - t) / len(y))
        params = {name: p - 0.05 * g[name] for name, p in params.items()}
    mark()
print(y.mean().item(), sorted(g))

# %% jvp_directional
def field(x):
    return torch.stack([x[..., 1], -torch.sin(x[..., 0]), x[..., 2] * x[..., 3], x.sum(-1)], -1)


x, v = torch.randn(6, 4), torch.ones(6, 4)
for epoch in range(EPOCHS):
    for i in range(STEPS):
        out, tangent = jvp(field, (x,), (v,))
        x = torch.tanh(x + 0.01 * out)
        v = F.normalize(v + 0.01 * tangent, dim=-1)
    mark()
print(x.sum().item(), v.sum().item())

# %% jacrev_newton_step
def equations(z):
    x, y = z[0], z[1]
    return torch.stack([x ** 2 + y ** 2 - 4, torch.exp(x) + y - 1])


jacobian = jacrev(equations)
roots = []
for epoch in range(EPOCHS):
    for i in range(STEPS):
        if i % 10 == 0:
            z = torch.tensor([1.0 + 0.01 * i, -1.7])
        z = z - torch.linalg.solve(jacobian(z), equations(z))
    roots.append(z)
    mark()
print(torch.stack(roots).mean(0))

# %% jacfwd_against_jacrev
def layer(w, x):
    return torch.tanh(w @ x)


w, gap = torch.randn(3, 5) * 0.5, 0.0
for epoch in range(EPOCHS):
    for i in range(STEPS):
        x = inputs[i, :5, 0]
        forward = jacfwd(layer, argnums=1)(w, x)
        backward = jacrev(layer, argnums=1)(w, x)
        gap = max(gap, (forward - backward).abs().max().item())
        w = torch.tanh(w + 0.05 * forward)
    mark()
print(gap < 1e-5, forward.shape, w.sum().item())

# %% hessian_of_quadratic
a = torch.randn(4, 4)
a = a @ a.t() + torch.eye(4)


def energy(z):
    return 0.5 * z @ a @ z + torch.cos(z).sum()


z = torch.ones(4)
for epoch in range(EPOCHS):
    for i in range(STEPS):
        if i % 5 == 0:
            h = hessian(energy)(z)
        z = z - 0.1 * torch.linalg.solve(h + torch.eye(4), a @ z - torch.sin(z))
    mark()
print(h.diagonal().tolist(), round(energy(z).item(), 4))

# %% stacked_ensemble
models = [nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2)) for _ in range(5)]
stacked, buffers = stack_module_state(models)
base = models[0].to("meta")


def call(params, buffers, x):
    return functional_call(base, (params, buffers), (x,))


with torch.no_grad():
    for epoch in range(EPOCHS):
        for i in range(STEPS):
            outputs = vmap(call, in_dims=(0, 0, None))(stacked, buffers, inputs[i])
            each = vmap(call)(stacked, buffers, inputs[i][:5].unsqueeze(1))
            inputs[i] += 0.01 * outputs.mean(0).repeat(1, 2)
        mark()
print(outputs.shape, each.shape, outputs.std(0).mean().item())

# %% linearize_once_apply_often
for epoch in range(EPOCHS):
    x = inputs[epoch]
    y, push = linearize(lambda z: torch.sin(z) * z.sum(1, keepdim=True), x)
    v = torch.ones_like(x)
    for i in range(STEPS):
        v = push(v)
        v = v / (1 + v.norm())
    mark()
print(y.sum().item(), v.norm().item())

# %% functional_call_with_buffers
net = nn.Sequential(nn.Linear(4, 6), nn.BatchNorm1d(6), nn.Linear(6, 1))
weights = dict(net.named_parameters())
state = {name: b.clone() for name, b in net.named_buffers()}
opt = torch.optim.SGD(weights.values(), lr=0.02)
for epoch in range(EPOCHS):
    for x, t in zip(inputs, targets):
        loss = F.mse_loss(functional_call(net, {**weights, **state}, (x,)), t)
        opt.zero_grad()
        loss.backward()
        opt.step()
    mark()
print(loss.item(), state["1.num_batches_tracked"].item(), net[1].running_mean.sum().item())

# %% grad_of_grad_with_aux
def potential(x):
    y = (x ** 4).sum() / 4 - (x ** 2).sum()
    return y, {"size": x.detach().norm()}


x = torch.linspace(-2, 2, 6)
sizes = []
for epoch in range(EPOCHS):
    for i in range(STEPS):
        force, aux = grad(potential, has_aux=True)(x)
        curvature = grad(lambda z: grad(lambda u: potential(u)[0])(z).sum())(x)
        x = x - 0.01 * force / (1 + curvature.abs())
    sizes.append(aux["size"].item())
    mark()
print(sizes[-1], curvature.tolist())

# %% functionalize_in_place
def in_place(x):
    y = x.clone()
    y[..., 0] += 1
    y.mul_(0.5)[1:].sub_(0.2)
    return y


pure = functionalize(in_place, remove="mutations")
x = torch.randn(4, 5)
for epoch in range(EPOCHS):
    for i in range(STEPS):
        x = torch.sin(pure(x)) + vmap(in_place)(x.view(2, 2, 5)).view(4, 5) * 0.5
    mark()
print(x.sum().item(), (pure(x) == in_place(x)).all())

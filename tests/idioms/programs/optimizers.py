# Optimizers: the classes of torch.optim, their forms, and what people do around them.
model = nn.Sequential(nn.Linear(6, 16), nn.Tanh(), nn.Linear(16, 2))
inputs, targets = torch.randn(STEPS, 5, 6), torch.randn(STEPS, 5, 2)


def train(opt, epochs=EPOCHS):
    for epoch in range(epochs):
        for x, t in zip(inputs, targets):
            opt.zero_grad()
            loss = F.mse_loss(model(x), t)
            loss.backward()
            opt.step()
        mark()
    return loss.item()

# %% sgd_nesterov_dampening
opt = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9, nesterov=True, weight_decay=1e-4)
for epoch in range(EPOCHS):
    running = 0.0
    for i in range(STEPS):
        opt.zero_grad()
        loss = F.mse_loss(model(inputs[i]), targets[i])
        loss.backward()
        opt.step()
        running += loss.item()
    mark()
state = opt.state[model[0].weight]["momentum_buffer"]
print(f"{running / STEPS:.5f}", tuple(state.shape))

# %% adam_amsgrad_and_adamw
opts = [torch.optim.Adam(model[0].parameters(), lr=1e-3, amsgrad=True),
        torch.optim.AdamW(model[2].parameters(), lr=1e-3, weight_decay=0.05)]
for epoch in range(EPOCHS):
    for x, t in zip(inputs, targets):
        for opt in opts:
            opt.zero_grad()
        loss = F.mse_loss(model(x), t)
        loss.backward()
        for opt in opts:
            opt.step()
    mark()
print(loss.item(), opts[0].state[model[0].bias]["step"].item())

# %% foreach_and_fused
forms = dict(foreach=True), dict(fused=True), dict(foreach=False)
copies = [(how, nn.Linear(6, 2)) for how in forms]
opts = [torch.optim.Adam(net.parameters(), lr=1e-3, **how) for how, net in copies]
for epoch in range(EPOCHS):
    for i in range(STEPS):
        which = i % 3
        net, opt = copies[which][1], opts[which]
        opt.zero_grad()
        loss = F.mse_loss(net(inputs[i]), targets[i])
        loss.backward()
        opt.step()
    mark()
print([round(sum(p.sum().item() for p in net.parameters()), 4) for _, net in copies])

# %% rmsprop_centered
opt = torch.optim.RMSprop(model.parameters(), lr=1e-3, centered=True, momentum=0.5)
print(round(train(opt), 5))
with torch.no_grad():
    y = model(inputs[0])
print(y.shape, y.sum().item())
for name, p in model.named_parameters():
    print(name, p.abs().mean().item())

# %% adagrad_adadelta_adamax_adafactor
makers = {"Adagrad": (4, dict(lr=0.01, lr_decay=1e-3)), "Adadelta": (2, dict(lr=0.1, rho=0.9)),
          "Adamax": (2, dict(lr=1e-3)), "Adafactor": (2, dict(lr=1e-3))}
for name, (epochs, arguments) in makers.items():
    opt = getattr(torch.optim, name)(model.parameters(), **arguments)
    print(name, f"{train(opt, epochs):.5f}", len(opt.state))

# %% nadam_muon_radam_asgd
def loop(optimizer, epochs):
    optimizer.zero_grad(set_to_none=True)
    for _ in range(epochs):
        for i in range(STEPS):
            (model(inputs[i]) - targets[i]).square().mean().backward()
            optimizer.step()
            optimizer.zero_grad(set_to_none=True)
        mark()


loop(torch.optim.NAdam(model.parameters(), lr=5e-4), 2)
loop(torch.optim.Muon([model[0].weight, model[2].weight], lr=1e-3), 2)
loop(torch.optim.RAdam(model.parameters(), lr=5e-4), 3)
loop(torch.optim.ASGD(model.parameters(), lr=0.005, t0=100), 3)
print([round(p.norm().item(), 4) for p in model.parameters()])

# %% rprop_full_batch
class Trainer:
    def __init__(self, net, optimizer):
        self.net, self.optimizer, self.losses = net, optimizer, []

    def step(self, x, t):
        self.optimizer.zero_grad()
        loss = F.mse_loss(self.net(x), t)
        loss.backward()
        self.optimizer.step()
        self.losses.append(loss.detach())


x = torch.randn(20, 6)
trainer = Trainer(model, torch.optim.Rprop(model.parameters(), lr=1e-4, step_sizes=(1e-7, 1e-3)))
for epoch in range(EPOCHS):
    for i in range(STEPS):
        trainer.step(x, torch.sin(x[:, :2]))
    mark()
print(len(trainer.losses), torch.stack(trainer.losses)[::100])

# %% lbfgs_with_closure
a = torch.randn(12, 4)
w, b = torch.zeros(4, requires_grad=True), torch.randn(12)
opt = torch.optim.LBFGS([w], lr=0.1, max_iter=2, history_size=3)


def closure():
    opt.zero_grad()
    loss = (a @ w - b).square().mean() + 0.1 * w.abs().sum().square()
    loss.backward()
    return loss


for epoch in range(EPOCHS):
    w.data.zero_()
    for i in range(STEPS):
        loss = opt.step(closure)
    mark()
print(loss.item(), [round(v, 3) for v in w.tolist()])

# %% closure_in_lambda_for_sgd
opt = torch.optim.SGD(model.parameters(), lr=0.01)
best = float("inf")
for epoch in range(EPOCHS):
    for x, t in zip(inputs, targets):
        def closure():
            opt.zero_grad()
            loss = F.l1_loss(model(x), t)
            loss.backward()
            return loss

        best = min(best, opt.step(closure).item())
    mark()
print(best)

# %% param_groups_and_frozen_lr
opt = torch.optim.SGD([
    {"params": model[0].parameters(), "lr": 1e-3},
    {"params": [model[2].weight], "weight_decay": 0.01},
], lr=1e-2, momentum=0.9)
opt.add_param_group({"params": [model[2].bias], "momentum": 0.0})
for epoch in range(EPOCHS):
    for i, (x, t) in enumerate(zip(inputs, targets)):
        opt.param_groups[0]["lr"] = 1e-3 if i % 2 else 0.0
        opt.zero_grad()
        loss = F.mse_loss(model(x), t)
        loss.backward()
        opt.step()
    mark()
print(loss.item(), [group["lr"] for group in opt.param_groups])

# %% weight_decay_split
def configure(net, weight_decay, lr):
    params = {name: p for name, p in net.named_parameters() if p.requires_grad}
    decay = [p for p in params.values() if p.dim() >= 2]
    rest = [p for p in params.values() if p.dim() < 2]
    groups = [dict(params=decay, weight_decay=weight_decay), dict(params=rest, weight_decay=0.0)]
    return torch.optim.AdamW(groups, lr=lr, betas=(0.9, 0.95))


optimizer = configure(model, 0.1, 1e-3)
for epoch in range(EPOCHS):
    for i in range(STEPS):
        for micro in range(2):
            at = (2 * i + micro) % STEPS
            (F.mse_loss(model(inputs[at]), targets[at]) / 2).backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
    mark()
print(model[0].weight.norm().item(), model[2].bias.tolist())

# %% ema_of_weights
import copy


class EMA:
    def __init__(self, net, decay):
        self.decay = decay
        self.shadow = copy.deepcopy(net).eval().requires_grad_(False)

    @torch.no_grad()
    def update(self, net):
        for s, p in zip(self.shadow.parameters(), net.parameters()):
            s.mul_(self.decay).add_(p, alpha=1 - self.decay)


ema, opt = EMA(model, 0.99), torch.optim.Adam(model.parameters(), lr=1e-3)
for epoch in range(EPOCHS):
    for x, t in zip(inputs, targets):
        opt.zero_grad()
        F.mse_loss(model(x), t).backward()
        opt.step()
        ema.update(model)
    mark()
print(F.mse_loss(ema.shadow(inputs[0]), targets[0]).item())

# %% swa_averaged_model
from torch.optim.swa_utils import SWALR, AveragedModel, get_ema_multi_avg_fn

swa, ema = AveragedModel(model), AveragedModel(model, multi_avg_fn=get_ema_multi_avg_fn(0.95))
opt = torch.optim.SGD(model.parameters(), lr=0.05)
scheduler = SWALR(opt, swa_lr=0.01, anneal_epochs=5)
for epoch in range(EPOCHS):
    for i in range(STEPS):
        opt.zero_grad()
        F.mse_loss(model(inputs[i]), targets[i]).backward()
        opt.step()
        ema.update_parameters(model)
    if epoch >= 3:
        swa.update_parameters(model)
        scheduler.step()
    mark()
print(swa(inputs[0]).sum().item(), ema(inputs[0]).sum().item(), swa.n_averaged)

# %% sgd_by_hand_no_grad
w1, w2 = torch.randn(6, 16) * 0.3, torch.randn(16, 2) * 0.3
b1, b2 = torch.zeros(16), torch.zeros(2)
params = [w1, b1, w2, b2]
for p in params:
    p.requires_grad = True
for epoch in range(EPOCHS):
    for x, t in zip(inputs, targets):
        loss = (((x @ w1 + b1).clamp(min=0) @ w2 + b2 - t) ** 2).mean()
        loss.backward()
        with torch.no_grad():
            for p in params:
                p -= 0.02 * p.grad
                p.grad.zero_()
    mark()
print(loss.item(), w1.sum().item())

# %% momentum_by_hand_with_data
velocity = {p: torch.zeros_like(p) for p in model.parameters()}
for epoch in range(EPOCHS):
    for i in range(STEPS):
        loss = F.mse_loss(model(inputs[i]), targets[i])
        model.zero_grad()
        loss.backward()
        for p, v in velocity.items():
            v.mul_(0.9).add_(p.grad.data)
            p.data = p.data - 0.005 * v
    mark()
print(loss.item(), sum(v.norm() for v in velocity.values()).item())

# %% optimizer_subclass_lion
class Lion(torch.optim.Optimizer):
    def __init__(self, params, lr=1e-4, betas=(0.9, 0.99), weight_decay=0.0):
        super().__init__(params, dict(lr=lr, betas=betas, weight_decay=weight_decay))

    @torch.no_grad()
    def step(self, closure=None):
        for group in self.param_groups:
            for p in group["params"]:
                if p.grad is None:
                    continue
                state = self.state[p]
                if len(state) == 0:
                    state["exp_avg"] = torch.zeros_like(p)
                a, (b1, b2) = state["exp_avg"], group["betas"]
                p.mul_(1 - group["lr"] * group["weight_decay"])
                update = (a * b1 + p.grad * (1 - b1)).mul(50).tanh()
                p.add_(update, alpha=-group["lr"])
                a.mul_(b2).add_(p.grad, alpha=1 - b2)


print(train(Lion(model.parameters(), lr=1e-3, weight_decay=0.01)))

# %% clip_norm_and_value
opt = torch.optim.SGD(model.parameters(), lr=0.05)
norms, clipped = [], 0
for epoch in range(EPOCHS):
    for i, (x, t) in enumerate(zip(inputs, targets)):
        opt.zero_grad()
        F.mse_loss(model(x), 3 * t).backward()
        if i % 5 == 4:
            nn.utils.clip_grad_value_(model.parameters(), 0.1)
        else:
            norm = nn.utils.clip_grad_norm_(model.parameters(), max_norm=1.0)
            clipped += int(norm > 1.0)
            norms.append(norm.item())
        opt.step()
    mark()
print(sum(norms) / len(norms), clipped > 0)

# %% zero_grad_forms
opt = torch.optim.SGD(model.parameters(), lr=0.02)
forms = [opt.zero_grad, lambda: opt.zero_grad(set_to_none=False), model.zero_grad,
         lambda: [p.grad.zero_() for p in model.parameters() if p.grad is not None],
         lambda: [setattr(p, "grad", None) for p in model.parameters()]]
missing = 0
for epoch in range(EPOCHS):
    for i in range(STEPS):
        forms[i % len(forms)]()
        missing += sum(p.grad is None for p in model.parameters())
        loss = F.mse_loss(model(inputs[i]), targets[i])
        loss.backward()
        opt.step()
    mark()
print(loss.item(), missing)

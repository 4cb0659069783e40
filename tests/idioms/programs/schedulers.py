# Learning-rate schedulers, each stepped as people step it.
from torch.optim import lr_scheduler

model = nn.Sequential(nn.Linear(8, 16), nn.Tanh(), nn.Linear(16, 1))
opt = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.5)
inputs, targets = torch.randn(STEPS, 4, 8), torch.randn(STEPS, 4, 1)


def train(sched):
    for epoch in range(EPOCHS):
        for x, t in zip(inputs, targets):
            opt.zero_grad()
            loss = F.mse_loss(model(x), t)
            loss.backward()
            opt.step()
            sched.step()
        mark()
    print(loss.item(), sched.get_last_lr())


# %% step_lr_each_step
sched = lr_scheduler.StepLR(opt, 30, gamma=0.9)
train(sched)

# %% reduce_on_plateau
sched = lr_scheduler.ReduceLROnPlateau(opt, patience=5)
for epoch in range(EPOCHS):
    for x, t in zip(inputs, targets):
        opt.zero_grad()
        loss = F.mse_loss(model(x), t)
        loss.backward()
        opt.step()
        sched.step(loss.item())
    mark()
print(loss.item(), sched.get_last_lr())

# %% one_cycle
sched = lr_scheduler.OneCycleLR(opt, max_lr=0.02, total_steps=EPOCHS * STEPS)
train(sched)

# %% sequential
sched = lr_scheduler.SequentialLR(opt, [lr_scheduler.LinearLR(opt, 0.1, total_iters=50), lr_scheduler.CosineAnnealingLR(opt, 450)], [50])
train(sched)

# %% lambda_and_chained
sched = lr_scheduler.ChainedScheduler([lr_scheduler.LambdaLR(opt, lambda k: 0.999 ** k), lr_scheduler.ConstantLR(opt, 0.5, 20)])
train(sched)

# %% cosine_warm_restarts
sched = lr_scheduler.CosineAnnealingWarmRestarts(opt, T_0=20, T_mult=2)
for epoch in range(EPOCHS):
    for i, (x, t) in enumerate(zip(inputs, targets)):
        opt.zero_grad()
        loss = F.mse_loss(model(x), t)
        loss.backward()
        opt.step()
        sched.step(epoch + i / STEPS)
    mark()
print(loss.item(), sched.get_last_lr())

# %% cyclic
sched = lr_scheduler.CyclicLR(opt, 0.001, 0.01, step_size_up=20, mode="triangular2")
train(sched)

# %% polynomial
sched = lr_scheduler.PolynomialLR(opt, total_iters=400, power=2.0)
train(sched)

# %% by_hand
for epoch in range(EPOCHS):
    for i, (x, t) in enumerate(zip(inputs, targets)):
        step = epoch * STEPS + i
        lr = 0.01 * min(1.0, (step + 1) / 50) * (1 - step / (EPOCHS * STEPS))
        for group in opt.param_groups:
            group["lr"] = lr
        opt.zero_grad()
        loss = F.mse_loss(model(x), t)
        loss.backward()
        opt.step()
    mark()
print(loss.item(), lr)

"""A neural ODE on a spiral: a Runge-Kutta solver by hand, the adjoint method as an autograd Function, after torchdiffeq's demo."""

import argparse

import torch
import torch.nn as nn
import torch.optim as optim

parser = argparse.ArgumentParser("ODE demo")
parser.add_argument("--method", type=str, choices=["euler", "rk4"], default="rk4")
parser.add_argument("--data_size", type=int, default=200)
parser.add_argument("--batch_time", type=int, default=8)
parser.add_argument("--batch_size", type=int, default=16)
parser.add_argument("--niters", type=int, default=60)
parser.add_argument("--test_freq", type=int, default=15)
args = parser.parse_args()
torch.manual_seed(20)


def step_of(func, t, dt, y):
    if args.method == "euler":
        return dt * func(t, y)
    k1 = func(t, y)
    k2 = func(t + dt / 2, y + dt * k1 / 2)
    k3 = func(t + dt / 2, y + dt * k2 / 2)
    k4 = func(t + dt, y + dt * k3)
    return dt * (k1 + 2 * k2 + 2 * k3 + k4) / 6


def odeint(func, y0, t):
    y, ys = y0, [y0]
    for t0, t1 in zip(t[:-1], t[1:]):
        y = y + step_of(func, t0, t1 - t0, y)
        ys.append(y)
    return torch.stack(ys)


class Adjoint(torch.autograd.Function):
    """Gradients from a second equation that is solved backwards, with no graph of the first one."""

    @staticmethod
    def forward(ctx, func, y0, t, *params):
        ctx.func = func
        with torch.no_grad():
            ys = odeint(func, y0, t)
        ctx.save_for_backward(t, ys, *params)
        return ys

    @staticmethod
    def backward(ctx, grad):
        t, ys, *params = ctx.saved_tensors
        func, a = ctx.func, torch.zeros_like(grad[-1])
        sums = [torch.zeros_like(p) for p in params]
        for i in range(len(t) - 1, 0, -1):
            a = a + grad[i]
            dt = t[i] - t[i - 1]
            with torch.enable_grad():
                y = ys[i - 1].detach().requires_grad_(True)
                out = y + step_of(func, t[i - 1], dt, y)
                da, *dp = torch.autograd.grad(out, (y, *params), a, allow_unused=True)
            a = da
            sums = [s if d is None else s + d for s, d in zip(sums, dp)]
        return (None, a + grad[0], None, *sums)


class ODEFunc(nn.Module):
    def __init__(self):
        super(ODEFunc, self).__init__()
        self.net = nn.Sequential(nn.Linear(2, 24), nn.Tanh(), nn.Linear(24, 2))
        for m in self.net.modules():
            if isinstance(m, nn.Linear):
                nn.init.normal_(m.weight, mean=0, std=0.1)
                nn.init.constant_(m.bias, val=0)
        self.nfe = 0

    def forward(self, t, y):
        self.nfe += 1
        return self.net(y ** 3)


class RunningAverageMeter:
    def __init__(self, momentum=0.97):
        self.momentum, self.val, self.avg = momentum, None, 0

    def update(self, val):
        self.avg = val if self.val is None else self.avg * self.momentum + val * (1 - self.momentum)
        self.val = val


true_y0, t = torch.tensor([[2.0, 0.0]]), torch.linspace(0.0, 10.0, args.data_size)
true_A = torch.tensor([[-0.1, 2.0], [-2.0, -0.1]])


class Lambda(nn.Module):
    def forward(self, t, y):
        return torch.mm(y ** 3, true_A)


with torch.no_grad():
    true_y = odeint(Lambda(), true_y0, t)


def get_batch():
    s = torch.randperm(args.data_size - args.batch_time)[:args.batch_size]
    return true_y[s], t[:args.batch_time], torch.stack([true_y[s + i] for i in range(args.batch_time)], dim=0)


func = ODEFunc()
optimizer = optim.RMSprop(func.parameters(), lr=1e-3)
meter = RunningAverageMeter()
for itr in range(1, args.niters + 1):
    optimizer.zero_grad()
    batch_y0, batch_t, batch_y = get_batch()
    if itr % 2:
        pred_y = odeint(func, batch_y0, batch_t)
    else:
        pred_y = Adjoint.apply(func, batch_y0, batch_t, *func.parameters())
    loss = torch.mean(torch.abs(pred_y - batch_y))
    loss.backward()
    optimizer.step()
    meter.update(loss.item())
    if itr % args.test_freq == 0:
        with torch.no_grad():
            pred_y = odeint(func, true_y0, t)
            loss = torch.mean(torch.abs(pred_y - true_y))
            print("Iter {:04d} | Total Loss {:.5f} | running {:.5f} | evaluations {}".format(itr, loss.item(), meter.avg, func.nfe))

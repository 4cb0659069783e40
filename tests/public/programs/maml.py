"""Model-agnostic meta-learning of sine waves: inner steps with create_graph, an outer optimizer, functional calls, after common MAML code."""

import math

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.func import functional_call

torch.manual_seed(27)


class SineTask:
    def __init__(self, generator):
        self.amplitude = 0.5 + 4.0 * torch.rand((), generator=generator)
        self.phase = math.pi * torch.rand((), generator=generator)
        self.generator = generator

    def sample(self, count):
        x = 10 * torch.rand(count, 1, generator=self.generator) - 5
        return x, self.amplitude * torch.sin(x - self.phase)


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(1, 32), nn.ReLU(), nn.Linear(32, 32), nn.ReLU(), nn.Linear(32, 1))

    def forward(self, x):
        return self.net(x)


def adapt(model, params, x, y, inner_lr, steps, create_graph):
    for _ in range(steps):
        loss = F.mse_loss(functional_call(model, params, (x,)), y)
        grads = torch.autograd.grad(loss, list(params.values()), create_graph=create_graph)
        params = {name: p - inner_lr * g for (name, p), g in zip(params.items(), grads)}
    return params


def evaluate(model, generator, tasks=6):
    before = after = 0.0
    for _ in range(tasks):
        task = SineTask(generator)
        x, y = task.sample(10)
        test_x, test_y = task.sample(50)
        start = {name: p.detach().clone().requires_grad_() for name, p in model.named_parameters()}
        before += F.mse_loss(functional_call(model, start, (test_x,)), test_y).item()
        adapted = adapt(model, start, x, y, 0.01, 3, create_graph=False)
        after += F.mse_loss(functional_call(model, adapted, (test_x,)), test_y).item()
    return before / tasks, after / tasks


generator = torch.Generator().manual_seed(1)
model = Model()
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
for iteration in range(60):
    outer = 0.0
    optimizer.zero_grad()
    for _ in range(4):
        task = SineTask(generator)
        x, y = task.sample(10)
        adapted = adapt(model, dict(model.named_parameters()), x, y, 0.01, 1, create_graph=iteration % 10 != 9)
        query_x, query_y = task.sample(10)
        loss = F.mse_loss(functional_call(model, adapted, (query_x,)), query_y) / 4
        loss.backward()
        outer += loss.item()
    optimizer.step()
    if iteration % 10 == 9:
        before, after = evaluate(model, torch.Generator().manual_seed(2))
        print(f"iteration {iteration + 1}: outer loss {outer:.4f}, unseen tasks {before:.4f} before and {after:.4f} behind three steps")

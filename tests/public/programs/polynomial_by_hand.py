"""One cubic fitted seven ways: numpy, tensors, autograd, an own Function, nn, optim, a module with control flow; after PyTorch's learning-with-examples."""

import math
import random

import numpy as np
import torch

STEPS = 400


def with_numpy():
    rng = np.random.RandomState(0)
    x = np.linspace(-math.pi, math.pi, 500)
    y = np.sin(x)
    a, b, c, d = rng.randn(4)
    for t in range(STEPS):
        y_pred = a + b * x + c * x ** 2 + d * x ** 3
        loss = np.square(y_pred - y).sum()
        if t % 100 == 99:
            print(t, f"{loss:.4f}")
        grad_y_pred = 2.0 * (y_pred - y)
        a -= 2e-6 * grad_y_pred.sum()
        b -= 2e-6 * (grad_y_pred * x).sum()
        c -= 2e-6 * (grad_y_pred * x ** 2).sum()
        d -= 2e-6 * (grad_y_pred * x ** 3).sum()
    print(f"numpy: y = {a:.4f} + {b:.4f} x + {c:.4f} x^2 + {d:.4f} x^3")


def data():
    torch.manual_seed(0)
    x = torch.linspace(-math.pi, math.pi, 500)
    return x, torch.sin(x)


def with_tensors():
    x, y = data()
    a, b, c, d = (torch.randn(()) for _ in range(4))
    for t in range(STEPS):
        y_pred = a + b * x + c * x ** 2 + d * x ** 3
        loss = (y_pred - y).pow(2).sum().item()
        if t % 100 == 99:
            print(t, f"{loss:.4f}")
        grad_y_pred = 2.0 * (y_pred - y)
        a -= 2e-6 * grad_y_pred.sum()
        b -= 2e-6 * (grad_y_pred * x).sum()
        c -= 2e-6 * (grad_y_pred * x ** 2).sum()
        d -= 2e-6 * (grad_y_pred * x ** 3).sum()
    print(f"tensors: y = {a.item():.4f} + {b.item():.4f} x + {c.item():.4f} x^2 + {d.item():.4f} x^3")


def with_autograd():
    x, y = data()
    a, b, c, d = (torch.randn((), requires_grad=True) for _ in range(4))
    for t in range(STEPS):
        y_pred = a + b * x + c * x ** 2 + d * x ** 3
        loss = (y_pred - y).pow(2).sum()
        if t % 100 == 99:
            print(t, f"{loss.item():.4f}")
        loss.backward()
        with torch.no_grad():
            for weight in (a, b, c, d):
                weight -= 2e-6 * weight.grad
                weight.grad = None
    print(f"autograd: y = {a.item():.4f} + {b.item():.4f} x + {c.item():.4f} x^2 + {d.item():.4f} x^3")


class LegendrePolynomial3(torch.autograd.Function):
    @staticmethod
    def forward(ctx, input):
        ctx.save_for_backward(input)
        return 0.5 * (5 * input ** 3 - 3 * input)

    @staticmethod
    def backward(ctx, grad_output):
        input, = ctx.saved_tensors
        return grad_output * 1.5 * (5 * input ** 2 - 1)


def with_function():
    x, y = data()
    a, b, c, d = (torch.full((), value, requires_grad=True) for value in (0.0, -1.0, 0.0, 0.3))
    for t in range(STEPS):
        P3 = LegendrePolynomial3.apply
        y_pred = a + b * P3(c + d * x)
        loss = (y_pred - y).pow(2).sum()
        if t % 100 == 99:
            print(t, f"{loss.item():.4f}")
        loss.backward()
        with torch.no_grad():
            for weight in (a, b, c, d):
                weight -= 5e-6 * weight.grad
                weight.grad = None
    print(f"function: y = {a.item():.4f} + {b.item():.4f} * P3({c.item():.4f} + {d.item():.4f} x)")


def with_nn():
    x, y = data()
    p = torch.tensor([1, 2, 3])
    xx = x.unsqueeze(-1).pow(p)
    model = torch.nn.Sequential(torch.nn.Linear(3, 1), torch.nn.Flatten(0, 1))
    loss_fn = torch.nn.MSELoss(reduction="sum")
    for t in range(STEPS):
        y_pred = model(xx)
        loss = loss_fn(y_pred, y)
        if t % 100 == 99:
            print(t, f"{loss.item():.4f}")
        model.zero_grad()
        loss.backward()
        with torch.no_grad():
            for param in model.parameters():
                param -= 1e-6 * param.grad
    linear_layer = model[0]
    print("nn:", f"{linear_layer.bias.item():.4f}", [round(v, 4) for v in linear_layer.weight[0].tolist()])


def with_optim():
    x, y = data()
    xx = x.unsqueeze(-1).pow(torch.tensor([1, 2, 3]))
    model = torch.nn.Sequential(torch.nn.Linear(3, 1), torch.nn.Flatten(0, 1))
    loss_fn = torch.nn.MSELoss(reduction="sum")
    optimizer = torch.optim.RMSprop(model.parameters(), lr=1e-3)
    for t in range(STEPS):
        loss = loss_fn(model(xx), y)
        if t % 100 == 99:
            print(t, f"{loss.item():.4f}")
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print("optim:", f"{model[0].bias.item():.4f}", [round(v, 4) for v in model[0].weight[0].tolist()])


class DynamicNet(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b, self.c, self.d, self.e = (torch.nn.Parameter(0.1 * torch.randn(())) for _ in range(5))

    def forward(self, x):
        y = self.a + self.b * x + self.c * x ** 2 + self.d * x ** 3
        for exp in range(4, random.randint(4, 6)):
            y = y + self.e * x ** exp
        return y

    def string(self):
        return f"y = {self.a.item():.4f} + {self.b.item():.4f} x + {self.c.item():.4f} x^2 + {self.d.item():.4f} x^3 + {self.e.item():.5f} x^4 ? + {self.e.item():.5f} x^5 ?"


def with_control_flow():
    x, y = data()
    random.seed(4)
    model = DynamicNet()
    criterion = torch.nn.MSELoss(reduction="sum")
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-8, momentum=0.9)
    for t in range(STEPS):
        loss = criterion(model(x), y)
        if t % 100 == 99:
            print(t, f"{loss.item():.4f}")
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print("dynamic:", model.string())


if __name__ == "__main__":
    for part in (with_numpy, with_tensors, with_autograd, with_function, with_nn, with_optim, with_control_flow):
        part()

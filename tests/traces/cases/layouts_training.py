# Training through convolutions: gradients of images and weights, batch norm, pooling, exits between forward and backward, hooks that look at gradients.
# expect: compiled>=0.6
import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(0)


class Net(nn.Module):
    def __init__(self, inplace):
        super().__init__()
        self.a, self.b, self.c = nn.Conv2d(3, 8, 3, padding=1, bias=False), nn.Conv2d(8, 8, 3, padding=1), nn.Conv2d(8, 12, 1)
        self.norm, self.norm2 = nn.BatchNorm2d(8), nn.GroupNorm(3, 12)
        self.relu = nn.ReLU(inplace)
        self.head = nn.Linear(12, 4)

    def forward(self, x):
        x = F.max_pool2d(self.relu(self.norm(self.a(x))), 2)
        y = self.relu(self.b(x) + x)
        y = F.interpolate(self.norm2(self.c(y)), scale_factor=2, mode="bilinear", align_corners=False)
        return self.head(F.adaptive_avg_pool2d(y, 1).flatten(1))


def show(name, *tensors):
    print(name, *(f"{tuple(t.shape)} {t.stride()} {t.double().sum().item():.3f}" for t in tensors))


def train(model, optimizer, watch=False):
    x, y = torch.randn(4, 3, 8, 8), torch.randint(0, 4, (4,))
    for k in range(24):
        optimizer.zero_grad()
        out = model(x)
        loss = F.cross_entropy(out, y)
        if watch and loss.item() < 1.2 and k % 3 == 0:
            print(k, out.grad_fn.name())
        loss.backward()
        optimizer.step()
    print(f"{loss.item():.4f}")
    show("parameters", *model.parameters(), *(p.grad for p in model.parameters()))


for inplace in (False, True):
    model = Net(inplace)
    train(model, torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9), watch=inplace)
model = Net(True)
train(model, torch.optim.AdamW(model.parameters(), lr=0.01))


def middle(first, second, x):
    """A variable between two convolutions has its graph where the trace is left."""
    total = 0.0
    for k in range(24):
        first.zero_grad()
        second.zero_grad()
        y = first(x * (1 + k % 5))
        z = torch.tanh_(y * 1.5)
        if z.sum() < -0.55:
            show("middle", y, z)
            print(y.grad_fn.name(), z.grad_fn.name())
            z = z * 2
        loss = second(z).square().mean() + y.mean()
        loss.backward()
        total += loss.item() + first.weight.grad.sum().item() + second.weight.grad.abs().sum().item()
    print(f"{total:.3f}")
    show("gradients", first.weight.grad, second.weight.grad, first.bias.grad)


middle(nn.Conv2d(3, 8, 3, padding=1), nn.Conv2d(8, 4, 3), torch.randn(2, 3, 8, 8))


def written(first, second, x):
    """The input of a convolution is written between two uses, and asks for its gradient."""
    image = torch.zeros(2, 8, 8, 8)
    leaf = x.clone().requires_grad_()
    for k in range(24):
        image.add_(0.125)
        leaf.grad = None
        with torch.no_grad():
            y = second(image)
            image.mul_(0.5)
        out = (y * second(image) + F.relu(second(first(leaf)))).sum((2, 3)).square().mean()
        out.backward()
    show("written", leaf.grad, first.weight.grad, second.weight.grad, y)
    print(f"{out.item():.4f}")


written(nn.Conv2d(3, 8, 3, padding=1), nn.Conv2d(8, 8, 3, padding=1), torch.randn(2, 3, 8, 8))


def gradients(first, second, x):
    """Gradients of images that the script takes."""
    for k in range(20):
        y = first(x + k)
        z = second(F.relu(y))
        grad, = torch.autograd.grad(z.square().sum(), y)
    show("gradients", grad, y, z)


gradients(nn.Conv2d(3, 8, 3, padding=1), nn.Conv2d(8, 8, 3, padding=1), torch.randn(2, 3, 8, 8))

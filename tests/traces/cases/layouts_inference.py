# Images between convolutions in inference: residual blocks in place, joined branches, poolings, what the script looks at in the middle and gets at the end. Strides are as eager has them.
# gap: compiled with --hot=2 an inner loop whose rounds differ is recorded again and again, where a trace of the loop around it would hold all rounds
# expect: compiled>=0.6
import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(0)


class Block(nn.Module):
    def __init__(self, inside, outside, stride=1):
        super().__init__()
        self.first = nn.Conv2d(inside, outside, 3, stride, 1, bias=False)
        self.norm1 = nn.BatchNorm2d(outside)
        self.second = nn.Conv2d(outside, outside, 3, 1, 1, bias=False)
        self.norm2 = nn.BatchNorm2d(outside)
        self.relu = nn.ReLU(inplace=True)
        self.down = nn.Sequential(nn.Conv2d(inside, outside, 1, stride, bias=False), nn.BatchNorm2d(outside)) if stride != 1 or inside != outside else None

    def forward(self, x):
        y = self.norm2(self.second(self.relu(self.norm1(self.first(x)))))
        y += x if self.down is None else self.down(x)
        return self.relu(y)


class Residual(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(3, 8, 5, 2, 2, bias=False), nn.BatchNorm2d(8), nn.ReLU(inplace=True), nn.MaxPool2d(3, 2, 1))
        self.blocks = nn.Sequential(Block(8, 8), Block(8, 16, 2), Block(16, 16))
        self.pool = nn.AdaptiveAvgPool2d(1)
        self.head = nn.Linear(16, 5)

    def forward(self, x):
        return self.head(torch.flatten(self.pool(self.blocks(self.stem(x))), 1))


class Branches(nn.Module):
    """Joined along the channels; one branch is depthwise, one squeezes and excites."""

    def __init__(self):
        super().__init__()
        self.a, self.b, self.c = nn.Conv2d(3, 8, 1), nn.Conv2d(3, 8, 3, padding=1), nn.Conv2d(8, 8, 3, padding=1, groups=8)
        self.squeeze, self.excite = nn.Conv2d(24, 4, 1), nn.Conv2d(4, 24, 1)
        self.last = nn.Conv2d(24, 6, 3)

    def forward(self, x):
        a, b = F.silu(self.a(x)), F.hardtanh(self.b(x))
        y = torch.cat([a, F.avg_pool2d(b, 3, 1, 1), self.c(a)], 1)
        y = y * torch.sigmoid(self.excite(F.relu(self.squeeze(y.mean((2, 3), keepdim=True)))))
        return F.interpolate(self.last(y), scale_factor=2, mode="nearest")


class Up(nn.Module):
    """Down and up again, by transposed convolution and bilinear interpolation, with what was left behind joined."""

    def __init__(self):
        super().__init__()
        self.a, self.b, self.c = nn.Conv2d(3, 8, 3, padding=1), nn.Conv2d(8, 16, 3, padding=1), nn.ConvTranspose2d(16, 8, 2, 2)
        self.d, self.e = nn.Conv2d(16, 8, 3, padding=1), nn.Conv2d(8, 2, 1)

    def forward(self, x):
        a = F.relu(self.a(x))
        b = F.relu(self.b(F.max_pool2d(a, 2)))
        y = F.relu(self.d(torch.cat([self.c(b), a], 1)))
        return self.e(F.interpolate(y, size=(20, 20), mode="bilinear", align_corners=False))


def show(name, *tensors):
    print(name, *(f"{tuple(t.shape)} {t.stride()} {t.is_contiguous()} {t.double().sum().item():.4f} {t.flatten()[:3].tolist()}" for t in tensors))


@torch.no_grad()
def whole(model, x):
    for k in range(20):
        y = model(x * (1 + k / 20))
    show(type(model).__name__, y)


for make in (Residual, Branches, Up):
    whole(make().eval(), torch.randn(2, 3, 16, 16))


@torch.no_grad()
def features(model, x):
    """All that comes between goes to the script, and is written by it later."""
    kept = []
    for k in range(20):
        seen = []
        y = model.stem(x + k)
        for block in model.blocks:
            y = block(y)
            seen.append(y)
        seen.append(y.permute(0, 2, 3, 1).reshape(-1, 16))
        kept = seen
    kept[0].add_(1)
    show("features", *kept)


features(Residual().eval(), torch.randn(2, 3, 16, 16))


@torch.no_grad()
def branch(first, second, x):
    """An exit in the middle: what variables hold is used behind it."""
    for k in range(24):
        y = first(x if k % 6 else x - 2)
        z = F.relu(y)
        w, d = y, y.detach()
        w.mul_(0.5)
        if z.sum() > 40:
            u = second(z)
        else:
            show("branch", y, z, w)
            print(y.data_ptr() == w.data_ptr(), d.data_ptr() == y.data_ptr(), d is y, d.stride(), y._version, y.is_contiguous(memory_format=torch.channels_last), y.view(-1)[5].item())
            w.add_(1)
            u = second(z - y)
        last = u.mean((0, 2, 3))
    show("branch", y, z, u, last)


branch(nn.Conv2d(3, 8, 3, padding=1), nn.Conv2d(8, 4, 3), torch.randn(2, 3, 8, 8).abs())


@torch.no_grad()
def asked(first, second, x):
    """The script asks for strides and views; what it asks for goes on."""
    for _ in range(20):
        y = F.relu(first(x))
        if y.is_contiguous() and y.stride(1) == 64:
            y = second(y)
        z = y.view(2, -1)[:, 3:7]
        parts = F.relu(y).chunk(2, 1)
        s = second(torch.cat([parts[1], parts[0]], 1))
        one = second(s[:1])
    show("asked", y, z, parts[1], s, one)


asked(nn.Conv2d(3, 8, 3, padding=1), nn.Conv2d(8, 8, 3, padding=1), torch.randn(2, 3, 8, 8))


@torch.no_grad()
def other_layouts(first, second, x):
    """Some of it is channels last already, and one image has one channel, or one pixel."""
    for _ in range(20):
        y = first(x.contiguous(memory_format=torch.channels_last))
        z = second(F.relu(y)) + second(F.relu(first(x)))
        thin = F.conv2d(z.sum(1, keepdim=True), second.weight[:, :1], padding=1)
        pixel = second(F.adaptive_max_pool2d(thin, 1))
        t = first(x).transpose(2, 3) + 1
    show("other_layouts", y, z, thin, pixel, t)


other_layouts(nn.Conv2d(3, 8, 3, padding=1), nn.Conv2d(8, 8, 3, padding=1), torch.randn(2, 3, 8, 8))


def raises(first, second, x):
    """An error behind a convolution finds the variables as they are."""
    y = None
    try:
        for k in range(24):
            with torch.no_grad():
                y = F.relu(first(x))
                y = second(y if k < 20 else y[:, :3])
    except RuntimeError as error:
        print(str(error)[:60])
    show("raises", y)


raises(nn.Conv2d(3, 8, 3, padding=1), nn.Conv2d(8, 8, 3, padding=1), torch.randn(2, 3, 8, 8))

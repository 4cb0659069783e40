# Gradients of complex products conjugate lazily: rotary positions by complex numbers, layers in the Fourier domain, complex weights.
# expect: traces>=3, compiled>=0.8
import torch
import torch.nn as nn

torch.manual_seed(0)
angles = torch.outer(torch.arange(6.0), 10000.0 ** (-torch.arange(0, 8, 2) / 8))
turns = torch.polar(torch.ones_like(angles), angles)


def rotate(x):
    pairs = torch.view_as_complex(x.float().reshape(*x.shape[:-1], -1, 2))
    return torch.view_as_real(pairs * turns).flatten(2).type_as(x)


linear = nn.Linear(8, 8)
optimizer = torch.optim.SGD(linear.parameters(), lr=0.1)
for i in range(60):
    y = rotate(linear(torch.randn(3, 6, 8)))
    loss = y.pow(2).mean() + torch.fft.rfft(y, dim=1).abs().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if i % 10 == 0:
        print(f"{loss.item():.4f}")


class Spectral(nn.Module):
    def __init__(self, width, modes):
        super().__init__()
        self.modes = modes
        self.weight = nn.Parameter(torch.randn(width, width, modes, dtype=torch.cfloat) / width)

    def forward(self, x):
        spectrum = torch.fft.rfft(x)
        out = torch.zeros_like(spectrum)
        out[:, :, : self.modes] = torch.einsum("bix,iox->box", spectrum[:, :, : self.modes], self.weight)
        return torch.fft.irfft(out, n=x.size(-1))


net = nn.Sequential(Spectral(4, 5), nn.GELU(), Spectral(4, 5))
optimizer = torch.optim.SGD(net.parameters(), lr=0.005)
for i in range(60):
    x = torch.randn(3, 4, 16)
    loss = (net(x) - x.cumsum(-1)).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if i % 10 == 0:
        print(f"{loss.item():.4f}")

w = torch.randn(4, 4, dtype=torch.cdouble, requires_grad=True)
for i in range(60):
    a = torch.randn(4, 4, dtype=torch.cdouble)
    loss = ((a @ w).abs() + (w * a - w / (a + 3)).abs()).sum()
    loss.backward()
    with torch.no_grad():
        w -= 0.01 * w.grad
        w.grad = None
    if i % 10 == 0:
        print(f"{loss.item():.4f}")

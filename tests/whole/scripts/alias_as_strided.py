# as_strided makes overlapping windows and a Toeplitz matrix of one buffer, which is written between the reads.
# expect: compiled>=0.65, traces>=1
import torch

torch.manual_seed(135)
signal = torch.randn(12)
windows = signal.as_strided((9, 4), (1, 1))
toeplitz = torch.as_strided(signal, (4, 4), (1, 1), 2)
taps = torch.tensor([0.1, 0.4, 0.4, 0.1])
energies = []
for step in range(50):
    smooth = windows @ taps
    signal[2:11].copy_(smooth)
    product = toeplitz @ taps
    signal.as_strided((3,), (4,)).add_(product[:3], alpha=0.1)
    energies.append(windows.pow(2).sum().item())
    signal[step % 12] = 0.5
print([f"{e:.4f}" for e in energies[::10]], f"{toeplitz.trace().item():.4f}", torch.equal(windows[3], signal[3:7]))

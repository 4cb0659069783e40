# any, all, sum, min and max with generator expressions, keys and defaults, over tensors and over numbers.
# expect: compiled>=0.55, traces>=1
import torch

torch.manual_seed(48)
streams = [torch.randn(4) * 0.5 for _ in range(3)]
events = []
for step in range(60):
    streams = [torch.sin(s + 0.2 * (k + 1)) for k, s in enumerate(streams)]
    peaks = [s.max().item() for s in streams]
    if all(p > 0.9 for p in peaks):
        events.append(("all", step))
        streams = [s * 0.1 for s in streams]
    elif any((s < -0.5).any() for s in streams):
        events.append(("any", step))
        streams[0] = streams[0].abs()
    mixed = sum(s * w for s, w in zip(streams, (0.5, 0.3, 0.2)))
    top = max(streams, key=lambda s: s.sum().item())
    low = min((p for p in peaks if p > 2), default=-1.0)
    streams[step % 3] = 0.5 * mixed + 0.5 * top
print(len(events), events[:3], low, f"{mixed.sum().item():.4f}", f"{sum(peaks):.4f}", f"{max(*peaks):.4f}")

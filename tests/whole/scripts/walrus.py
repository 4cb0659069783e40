# Assignment expressions in conditions, comprehensions and while loops, with values that come from tensors.
# expect: compiled>=0.65, traces>=1
import torch

torch.manual_seed(52)
x = torch.randn(5)
log = []
step = 0
while (norm := x.norm().item()) > 0.05 and (step := step + 1) < 60:
    if (peak := x.abs().max()) > 1:
        x = x / peak
        log.append(round(peak.item(), 3))
    x = x * 0.97 + 0.05 * torch.sin(x * step)
    kept = [value for v in x.tolist() if (value := abs(v)) > 0.3]
    total = (s := sum(kept)) * 2 if kept else (s := 0.0)
print(step, f"{norm:.4f}", len(log), f"{total:.4f} {s:.4f} {value:.4f}")

# List comprehensions with conditions split and join attention heads.
# expect: compiled>=0.6, traces>=1
import torch

torch.manual_seed(22)
heads, width = 4, 12
projections = [torch.randn(width, width // heads) * 0.3 for _ in range(heads)]
x = torch.randn(5, width)
disabled = {2}
history = []
for step in range(50):
    parts = [x @ p for p in projections]
    mixed = [(part @ part.t()).softmax(-1) @ part if k not in disabled else torch.zeros_like(part) for k, part in enumerate(parts)]
    norms = [m.norm().item() for m in mixed if m.any()]
    x = torch.cat(mixed, dim=1) * 0.5 + 0.5 * x
    history.append(max(norms))
    if step == 30:
        disabled = {k for k in range(heads) if k % 2}
print(len(norms), [f"{h:.4f}" for h in history[::10]], f"{x.sum().item():.4f}")

# Boolean masks select, assign and compress: outlier removal, masked means and masked_scatter.
# expect: compiled>=0.4, traces>=1
import torch

torch.manual_seed(124)
kept, means = 0, []
table = torch.zeros(5, 3)
for step in range(50):
    x = torch.randn(10, 3) * (1 + step % 2)
    inside = (x - x.mean(0)).norm(dim=1) < 2.0
    clean = x[inside]
    kept += clean.size(0)
    means.append(clean.mean().item() if len(clean) else 0.0)
    high = table > 0.5
    table[high] *= 0.5
    table[~high] += clean.abs().mean()
    table.masked_scatter_(table < 0.1, torch.full((15,), 0.1))
print(kept, f"{sum(means):.4f}", [f"{v:.4f}" for v in table.sum(1).tolist()], torch.masked_select(table, table > 0.3).numel())

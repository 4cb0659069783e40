# `continue` skips batches with NaNs and empty ones, before and after some work was done on them.
# expect: compiled>=0.65, traces>=1
import torch

torch.manual_seed(88)
batches = [torch.randn(5, 3) for _ in range(20)]
batches[4][2, 1] = float("nan")
batches[9] = torch.empty(0, 3)
batches[15][0, 0] = float("inf")
mean, seen, skipped = torch.zeros(3), 0, {"empty": 0, "nan": 0, "inf": 0}
for epoch in range(4):
    for batch in batches:
        if not len(batch):
            skipped["empty"] += 1
            continue
        centred = batch - mean
        if torch.isnan(centred).any():
            skipped["nan"] += 1
            continue
        if not torch.isfinite(centred.sum()):
            skipped["inf"] += 1
            continue
        seen += 1
        mean = mean + 0.1 * centred.mean(0)
print(seen, skipped, [f"{v:.4f}" for v in mean.tolist()])

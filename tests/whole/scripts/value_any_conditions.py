# `if (x > limit).any():` and `.all()`, with and/or/not of tensors and numbers, in a simulation with walls.
# expect: compiled>=0.75, traces>=1
import torch

torch.manual_seed(74)
position, velocity = torch.rand(6, 2), torch.randn(6, 2) * 0.3
bounces = {"low": 0, "high": 0, "calm": 0, "slow": 0}
for step in range(70):
    position = position + 0.1 * velocity
    low, high = position < 0, position > 1
    if low.any():
        velocity = torch.where(low, velocity.abs(), velocity)
        bounces["low"] += int(low.sum())
    if high.any() and not (velocity == 0).all():
        velocity = torch.where(high, -velocity.abs(), velocity)
        bounces["high"] += int(high.sum())
    if not low.any() and not high.any():
        bounces["calm"] += 1
    if velocity.norm() < 0.8 or step % 20 == 19:
        velocity = velocity * 1.1
        bounces["slow"] += 1
print(bounces, [f"{v:.4f}" for v in position.sum(0).tolist()], f"{velocity.abs().sum().item():.4f}")

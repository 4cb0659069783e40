# A branch deep inside functions that the loop calls: a clipped surrogate objective whose sides depend on the values.
# expect: compiled>=0.85, traces>=1
import torch


def clip(ratio, low, high):
    if ratio.max() > high:
        return ratio.clamp(max=high), "high"
    if ratio.min() < low:
        return ratio.clamp(min=low), "low"
    return ratio, "inside"


def objective(new, old, advantage):
    clipped, side = clip((new - old).exp(), 0.8, 1.25)
    return (clipped * advantage).mean(), side


torch.manual_seed(97)
old = torch.zeros(6)
new = old.clone()
sides, total = {}, 0.0
for step in range(90):
    advantage = torch.sin(torch.arange(6.0) + step)
    value, side = objective(new, old, advantage)
    sides[side] = sides.get(side, 0) + 1
    total += value.item()
    new = new + 0.04 * advantage
    if step % 10 == 9:
        old = new.clone()
print(sides, f"{total:.4f}", [f"{v:.4f}" for v in new.tolist()])

# Enum, IntEnum and Flag members choose the reduction, the phase and the parts of a loss.
# expect: compiled>=0.75, traces>=1
from enum import Enum, Flag, IntEnum, auto

import torch


class Reduction(Enum):
    MEAN = "mean"
    SUM = "sum"

    def __call__(self, x):
        return getattr(x, self.value)()


class Phase(IntEnum):
    WARM = 0
    MAIN = 1
    COOL = 2


class Part(Flag):
    L1 = auto()
    L2 = auto()
    BOTH = L1 | L2


torch.manual_seed(55)
w = torch.randn(6)
losses = {phase: 0.0 for phase in Phase}
for step in range(60):
    phase = Phase(min(step // 20, 2))
    parts = Part.L1 if phase is Phase.WARM else Part.BOTH if phase < Phase.COOL else Part.L2
    loss = torch.zeros(())
    if Part.L1 in parts:
        loss = loss + Reduction.MEAN(w.abs())
    if parts & Part.L2:
        loss = loss + Reduction["SUM"](w * w)
    losses[phase] += loss.item()
    w = w - 0.05 * (torch.sign(w) * bool(parts & Part.L1) + 2 * w * (Part.L2 in parts))
print({phase.name: f"{value:.4f}" for phase, value in losses.items()}, parts, int(phase), Reduction("sum").name)

# A model returns a dataclass; a frozen config dataclass with defaults is replaced on the way.
# expect: compiled>=0.7, traces>=1
from dataclasses import asdict, dataclass, field, replace
from typing import Optional

import torch
from torch import nn


@dataclass(frozen=True)
class Config:
    width: int = 6
    dropout: float = 0.0
    gain: float = 1.0


@dataclass
class Output:
    logits: torch.Tensor
    loss: Optional[torch.Tensor] = None
    extras: dict = field(default_factory=dict)

    def __post_init__(self):
        self.extras["rows"] = self.logits.shape[0]


class Model(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.config = config
        self.layer = nn.Linear(config.width, 2)

    def forward(self, x, target=None):
        logits = self.layer(x) * self.config.gain
        loss = None if target is None else nn.functional.cross_entropy(logits, target)
        return Output(logits, loss)


torch.manual_seed(12)
model = Model(Config())
x, target = torch.randn(7, 6), torch.tensor([0, 1, 1, 0, 1, 0, 0])
losses = []
with torch.no_grad():
    for step in range(50):
        if step == 30:
            model.config = replace(model.config, gain=0.5)
        output = model(x + 0.02 * step, target if step % 2 else None)
        if output.loss is not None:
            losses.append(output.loss.item())
print(len(losses), f"{sum(losses):.4f}", output.extras, asdict(model.config), output == output)

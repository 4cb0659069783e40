# The loop reads a dataclass, a dict and globals that change while it runs.
# expect: compiled>=0.63
import dataclasses

import torch


@dataclasses.dataclass
class Config:
    gain: float = 0.5
    shift: int = 1
    clip: bool = False


config, table, offset = Config(), {"a": 1.0, "b": 2.0}, 0.0
x = torch.linspace(-1, 1, 7)
for i in range(70):
    if i == 20:
        config.gain = 0.25
    if i == 30:
        table["b"] = 3.0
    if i == 40:
        offset = 0.125
    if i == 50:
        config = dataclasses.replace(config, clip=True)
    if i == 60:
        table["c"] = 4
    x = x * config.gain + config.shift + table["b"] * 0.1 - offset + len(table)
    if config.clip:
        x = x.clamp(max=2.0)
    if i % 10 == 9:
        print(i, [f"{v:.6f}" for v in x.tolist()])

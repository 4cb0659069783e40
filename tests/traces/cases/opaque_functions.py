# Functions that are called as they are (tracer/opaque_functions.def): their exceptions do not end the trace.
# expect: compiled>=0.9, traces>=1
import copy

import torch


class Config:
    def __init__(self, scale):
        self.scale = scale
        self.names = ["a", "b"]


def main():
    torch.manual_seed(0)
    x, config, total = torch.randn(8), Config(1.5), 0.0
    for i in range(100):
        own = copy.deepcopy(config)
        own.names.append(str(i))
        pair = copy.copy(own)
        total += torch.relu(x * pair.scale).sum().item() + len(own.names) + len(config.names)
    print(f"{total:.2f}", pair.names, config.names)


main()

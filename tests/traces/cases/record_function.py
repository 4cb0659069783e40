# torch.profiler.record_function in a hot loop: silent while nobody listens, and heard by a profiler that starts later.
# expect: compiled>=0.5
import os

import torch
from torch.autograd.profiler import profile, record_function

x = torch.ones(16)


def run(count):
    global x
    for _ in range(count):
        with record_function("my label") as region:
            x = x * 1.01 - 0.005
    return region


region = run(40)
print(type(region).__name__, region.name, f"{x.sum().item():.5f}")
stderr = os.dup(2)
os.dup2(os.open(os.devnull, os.O_WRONLY), 2)  # the profiler writes lines with the time to it
with profile(use_kineto=False) as profiler:
    run(5)
os.dup2(stderr, 2)
print([event.count for event in profiler.key_averages() if event.key == "my label"])
run(40)
print(f"{x.sum().item():.5f}")

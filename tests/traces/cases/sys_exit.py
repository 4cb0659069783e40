# sys.exit(3) in the middle of the hot loop; finally blocks and atexit functions run.
# alone: its exit status and exit handlers are those of a started script
import atexit
import sys

import torch

atexit.register(print, "at exit")
x = torch.ones(3)
try:
    for i in range(100):
        x = torch.tanh(x * 1.1 + 0.01)
        if i == 40:
            print(f"{x.sum().item():.5f}")
            sys.exit(3)
finally:
    print("finally", i)

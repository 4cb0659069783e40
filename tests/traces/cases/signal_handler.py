# A Python signal handler runs in the middle of the hot loop, and changes a global that the loop reads.
import signal

import torch

scale = 1.0


def handler(number, frame):
    global scale
    scale = 2.0
    print("signal", number == signal.SIGUSR1)


signal.signal(signal.SIGUSR1, handler)
x = torch.zeros(3)
for i in range(60):
    if i == 30:
        signal.raise_signal(signal.SIGUSR1)
    x = x * 0.5 + scale
print([f"{v:.6f}" for v in x.tolist()])

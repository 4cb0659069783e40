# Another thread changes a weight in place, an attribute and a global while the loop waits for it at chosen steps.
# expect: compiled>=0.8, traces>=1
import threading

import torch
from torch import nn

GAIN = 1.0


def changer(net, turns, go, done):
    global GAIN
    for turn in range(turns):
        go.wait()
        go.clear()
        if turn == 0:
            GAIN = 0.5
        elif turn == 1:
            net.slope = 0.3
        else:
            with torch.no_grad():
                net.weight.mul_(1.5)
        done.set()


torch.manual_seed(110)
net = nn.Linear(3, 3)
net.slope = 0.01
x = torch.randn(4, 3)
go, done = threading.Event(), threading.Event()
thread = threading.Thread(target=changer, args=(net, 3, go, done))
thread.start()
sums = []
with torch.no_grad():
    for step in range(80):
        if step in (20, 40, 60):
            go.set()
            done.wait()
            done.clear()
        sums.append((nn.functional.leaky_relu(net(x), net.slope) * GAIN).sum().item())
thread.join()
print([f"{s:.4f}" for s in sums[5::10]])

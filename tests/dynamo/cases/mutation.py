# Compiled functions that write: arguments, parameters, buffers, attributes, lists, globals.
import logging

import torch

torch._logging.set_logs(dynamo=logging.ERROR)
history, count = [], 0


class Counter(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("seen", torch.zeros(()))
        self.calls = 0

    def forward(self, x):
        self.seen += x.sum()
        self.calls += 1
        return x * self.calls


@torch.compile(backend="eager")
def write(x, out):
    global count
    out.add_(x)
    count += 1
    history.append(x.sum())
    return out * 2


counter = Counter()
module = torch.compile(counter, backend="eager")
out, total = torch.zeros(3), torch.zeros(3)
for i in range(60):
    x = torch.full((3,), float(i % 5))
    before = out + 0
    total = total + write(x, out) - before + module(x)
    out.mul_(0.9)
print(total, out, count, len(history), counter.seen, counter.calls, out._version)

# The counters and the compile counter of torch._dynamo.testing after loops.
import torch
import torch._dynamo.testing
from torch._dynamo.utils import counters

counter = torch._dynamo.testing.CompileCounter()


@torch.compile(backend=counter)
def f(x, k):
    return x * k if k > 2 else x + k


for i in range(80):
    f(torch.ones(2), i % 5)
print(counter.frame_count, counter.op_count, dict(counters["stats"]), len(counters["graph_break"]))
counters.clear()
for i in range(80):
    f(torch.ones(2, dtype=torch.float64), 1)
print(counter.frame_count, counter.op_count, dict(counters["stats"]))

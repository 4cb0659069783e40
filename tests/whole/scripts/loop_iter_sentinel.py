# iter(callable, sentinel) over a queue of requests, and next() with a default.
# expect: compiled>=0.6, traces>=1
from collections import deque

import torch

torch.manual_seed(89)
queue = deque((f"job{k}", torch.randn(4)) for k in range(45))
queue.append(None)
queue.extend(("late", torch.ones(4)) for _ in range(3))
weight = torch.eye(4) * 0.5
answers, names = torch.zeros(4), []
for name, x in iter(queue.popleft, None):
    answers = torch.tanh(weight @ answers + x)
    names.append(name)
rest = iter(queue)
while (item := next(rest, "end")) != "end":
    answers = answers + item[1]
print(len(names), names[-1], len(queue), [f"{v:.4f}" for v in answers.tolist()])

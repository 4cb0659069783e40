# A ThreadPoolExecutor serves one model from four threads; answers come back in the order of the requests.
# expect: traces>=1
from concurrent.futures import ThreadPoolExecutor

import torch
from torch import nn

torch.manual_seed(137)
model = nn.Sequential(nn.Linear(6, 12), nn.GELU(), nn.Linear(12, 3)).eval()


def serve(job):
    number, x = job
    state = torch.zeros(3)
    with torch.no_grad():
        for _ in range(12):
            state = 0.5 * state + model(x).softmax(-1)
            x = x * 0.95
    return number, state.argmax().item(), state.max().item()


jobs = [(k, torch.randn(6)) for k in range(24)]
with ThreadPoolExecutor(4) as pool:
    answers = list(pool.map(serve, jobs))
    future = pool.submit(serve, (99, torch.ones(7)))
print([a[0] for a in answers] == list(range(24)), "".join(str(a[1]) for a in answers), f"{sum(a[2] for a in answers):.4f}")
print(type(future.exception()).__name__)

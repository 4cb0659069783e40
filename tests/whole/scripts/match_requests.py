# match/case on mappings and on __match_args__ handles a stream of requests to a model and its cache.
# expect: compiled>=0.8, traces>=1
from dataclasses import dataclass

import torch


@dataclass
class Point:
    x: float
    y: float


def handle(request, state):
    match request:
        case {"kind": "add", "value": Point(x, y)}:
            return state + torch.tensor([x, y])
        case {"kind": "scale", "value": float() as by} if by > 0:
            return state * by
        case {"kind": "rotate", "times": int(times)}:
            for _ in range(times):
                state = torch.stack([-state[1], state[0]])
            return state
        case {"kind": str(kind)}:
            raise KeyError(kind)


torch.manual_seed(51)
state = torch.tensor([1.0, 0.5])
kinds = [{"kind": "add", "value": Point(0.1, -0.2)}, {"kind": "scale", "value": 0.9}, {"kind": "rotate", "times": 2}]
refused = []
for step in range(60):
    request = {"kind": "stop"} if step == 41 else {**kinds[step % 3], "step": step}
    try:
        state = handle(request, state)
    except KeyError as error:
        refused.append((step, error.args))
print(refused, [f"{v:.5f}" for v in state.tolist()])

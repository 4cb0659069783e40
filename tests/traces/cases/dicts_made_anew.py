# A dict that each iteration makes anew, found in another one of the kind: neither is taken for the same each time. GradScaler keeps its state so.
# expect: compiled>=0.6
from collections import defaultdict

import torch
from torch import nn

torch.manual_seed(0)


class Keeper:
    def __init__(self):
        self.states, self.rounds = defaultdict(lambda: {"stage": 0, "norms": {}}), 0

    def step(self, key, value):
        state = self.states[key]
        if state["stage"] == 0:
            state["norms"][key] = value
        state["stage"] = 1
        return sum(state["norms"].values())

    def update(self):
        self.rounds += len(self.states)
        self.states = defaultdict(lambda: {"stage": 0, "norms": {}})


keeper, x, total = Keeper(), torch.ones(8, 4), 0.0
for i in range(300):
    x = torch.tanh(x * 1.01 + 0.1)
    total += keeper.step("a", x.norm()).item() + keeper.step("b", x.mean() * i).item()
    keeper.update()
print(f"{total:.1f}", keeper.rounds, dict(keeper.states))

model = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
scaler = torch.amp.GradScaler("cpu", init_scale=64.0, growth_interval=50)
data = torch.randn(300, 6, 4)
for i in range(300):
    optimizer.zero_grad()
    loss = model(data[i]).pow(2).mean()
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.update()
print(f"{loss.item():.5f}", scaler.get_scale())

# A compiled optimizer step, and a whole compiled training step.
import logging

import torch

torch._logging.set_logs(all=logging.ERROR)
torch.manual_seed(0)
model = torch.nn.Linear(4, 2)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)


@torch.compile(backend="eager")
def step():
    optimizer.step()


for i in range(40):
    model(torch.ones(3, 4) * (i % 3)).pow(2).sum().backward()
    step()
    optimizer.zero_grad()
print(model.weight)


@torch.compile(backend="eager")
def train(x):
    loss = model(x).pow(2).sum()
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    return loss.detach()


for i in range(40):
    loss = train(torch.ones(3, 4))
print(model.weight, round(loss.item(), 6))

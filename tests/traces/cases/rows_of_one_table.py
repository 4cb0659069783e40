# Rows drawn from one table share its memory in another way each time, and may be one object twice. Where somebody writes the table, its rows show it.
# expect: compiled>=0.7
import random
from collections import deque

import torch
from torch import nn

random.seed(1)
torch.manual_seed(1)
table, labels = torch.randn(40, 6), torch.randint(3, (40,))
model = nn.Linear(6, 3)
opt = torch.optim.SGD(model.parameters(), lr=0.05)


def learn(xs, ts):
    loss = nn.functional.cross_entropy(model(xs), ts)
    opt.zero_grad()
    loss.backward()
    opt.step()
    return loss.item()


memory, losses = deque(maxlen=30), []
for i in range(120):
    memory.append((table[i % 40], labels[i % 40]))
    if len(memory) < 6:
        continue
    xs, ts = zip(*random.sample(memory, 4))
    losses.append(learn(torch.stack(xs), torch.tensor([t.item() for t in ts])))
print("drawn apart", f"{losses[-1]:.4f}")

for i in range(120):
    xs, ts = zip(*random.choices(memory, k=6))
    losses.append(learn(torch.stack(xs), torch.stack(ts)))
print("drawn with repetitions", f"{losses[-1]:.4f}")

total = torch.zeros(6)
for i in range(120):
    a, b = table[random.randrange(40)], table[random.randrange(40)]
    total = torch.tanh(total + a * b)
print("two rows", f"{total.sum().item():.4f}")

for i in range(120):
    a, b = random.choice(memory)[0], random.choice(memory)[0]
    total = torch.tanh(total + a * 0.5)
    a += 0.01 * total
    total = total + b * 0.1
print("one written", f"{total.sum().item():.4f}", f"{table.sum().item():.4f}")

for i in range(120):
    a, b = random.choice(memory)[0], random.choice(memory)[0]
    total = torch.tanh(total + a * 0.5)
    if i % 7 == 3:
        table.mul_(0.99)
    total = total + b * 0.1
print("the table written now and then", f"{total.sum().item():.4f}", f"{table.sum().item():.4f}")

tied = nn.Linear(6, 6, bias=False)
other = nn.Linear(6, 6, bias=False)
opt = torch.optim.SGD([*tied.parameters(), *other.parameters()], lr=0.05)
for i in range(60):
    second = tied if i % 20 == 19 else other
    loss = (second(tied(table[:4])) - 1).pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
print("one weight twice", f"{loss.item():.4f}", f"{tied.weight.sum().item():.4f}", f"{other.weight.sum().item():.4f}")

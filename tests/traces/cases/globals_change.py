# Module-level code that assigns variables between calls of functions which use others: what these use is as it was, so their traces stay.
# expect: compiled>=0.9, traces>=3
import torch

torch.manual_seed(0)
w = torch.randn(8, 8) / 3
model = torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.Tanh())
factor = 0.125


def helper(x):
    return torch.relu(x @ w) * factor


def run(n):
    x = torch.ones(4, 8)
    with torch.no_grad():
        for i in range(n):
            x = torch.tanh(helper(x) + model(x))
    return x


result = run(400)
for epoch in range(30):
    losses = run(120).sum().item()
    note = f"{losses:.4f}"
    globals()["name_%d" % epoch] = epoch
print(note)
w = torch.randn(8, 8) / 3  # what they use
print(f"{run(400).sum().item():.4f}")
factor = 0.25
print(f"{run(400).sum().item():.4f}")
w.mul_(0.1)
print(f"{run(400).sum().item():.4f}")
for again in range(30):  # one object dies where the next one may be made
    w = torch.full((8, 8), again / 100)
    last = run(120).sum().item()
print(f"{last:.4f}")


def helper(x):
    return x - 0.01


print(f"{run(400).sum().item():.4f}")
del model
try:
    run(400)
except NameError as error:
    print(error)

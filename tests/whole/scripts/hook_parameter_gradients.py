# Hooks on parameters: one masks a gradient (a frozen embedding row), one runs after accumulation and steps at once.
# expect: compiled>=0.25, traces>=1
import torch
from torch import nn

torch.manual_seed(4)
table = nn.Embedding(9, 4)
head = nn.Linear(4, 3)
mask = torch.ones(9, 1)
mask[0] = 0.0
table.weight.register_hook(lambda grad: grad * mask)
steps = {"count": 0}


def apply_now(parameter):
    with torch.no_grad():
        parameter.sub_(0.2 * parameter.grad)
    parameter.grad = None
    steps["count"] += 1


for parameter in [*table.parameters(), *head.parameters()]:
    parameter.register_post_accumulate_grad_hook(apply_now)
first = table.weight[0].tolist()
words = torch.randint(0, 9, (12,))
labels = words % 3
for step in range(25):
    loss = nn.functional.cross_entropy(head(table(words)), labels)
    loss.backward()
print(f"{loss.item():.5f}", steps["count"], table.weight[0].tolist() == first, table.weight.grad is None)
print(f"{table.weight.sum().item():.4f}")

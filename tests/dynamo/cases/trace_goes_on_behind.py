# A loop with a compiled call in its middle has traces; hooks of the interpreter's slot are as before behind it.
# expect: traces>=1, compiled>=0.2
import torch


@torch.compile(backend="eager")
def middle(x):
    return x.sin() * 2


def before(x):
    for _ in range(6):
        x = torch.relu(x * 0.9 + 0.1)
    return x


total = torch.zeros(4)
for i in range(400):
    y = before(torch.full((4,), i / 100))
    y = middle(y)
    total = total + before(y).clamp(max=2)
print(total)

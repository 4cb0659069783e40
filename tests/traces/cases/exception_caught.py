# An exception in some iterations is caught in the loop, which goes on.
# expect: compiled>=0.74
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Linear(4, 2)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
caught = 0
for i in range(60):
    x = torch.full((3, 4), 0.1 * (i % 5))
    optimizer.zero_grad()
    try:
        out = model(x)
        if i % 9 == 8:
            out = out @ x
        loss = out.pow(2).sum()
        loss.backward()
    except RuntimeError as error:
        caught += 1
        print(i, str(error).splitlines()[0])
        continue
    finally:
        last = i
    optimizer.step()
print(caught, last, f"{model.weight.sum().item():.6f}")

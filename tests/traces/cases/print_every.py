# A print every seven iterations, in the loop.
# expect: compiled>=0.68
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Linear(4, 3)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
x, y = torch.randn(10, 4), torch.randint(3, (10,))
for i in range(60):
    optimizer.zero_grad()
    loss = nn.functional.cross_entropy(model(x), y)
    loss.backward()
    optimizer.step()
    if i % 7 == 0:
        print("step", i, f"loss {loss.item():.6f}", loss.detach())

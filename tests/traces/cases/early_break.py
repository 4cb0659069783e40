# The loop ends early when the loss is small enough; the loop variable keeps its value.
# expect: compiled>=0.7
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
x = torch.randn(30, 4)
y = x @ torch.tensor([[1.0], [2.0], [-1.0], [0.5]])
for i in range(1000):
    optimizer.zero_grad()
    loss = nn.functional.mse_loss(model(x), y)
    if loss < 1e-2:
        print("done")
        break
    loss.backward()
    optimizer.step()
else:
    print("not done")
print(i, f"{loss.item():.6f}", loss.requires_grad, [f"{v:.4f}" for v in model.weight.flatten().tolist()])

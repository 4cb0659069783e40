# Dropout takes the same numbers from the random stream as eager, and leaves the generator where eager leaves it.
# expect: compiled>=0.8
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Dropout(0.5), nn.Linear(32, 2))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
x, y = torch.randn(16, 8), torch.randint(2, (16,))
for i in range(50):
    optimizer.zero_grad()
    loss = nn.functional.cross_entropy(model(x), y)
    loss.backward()
    optimizer.step()
    if i % 10 == 0:
        print(f"{loss.item():.6f}")
print(torch.rand(3).tolist(), torch.randint(10000, (4,)).tolist())

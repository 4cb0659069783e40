# A DataLoader that shuffles, in this process: the order of the data comes from torch's random stream.
# expect: compiled>=0.63
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
dataset = TensorDataset(torch.randn(70, 5), torch.randint(2, (70,)))
loader = DataLoader(dataset, batch_size=10, shuffle=True)
model = nn.Linear(5, 2)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for epoch in range(6):
    total = 0.0
    for x, y in loader:
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        total += loss.item()
    print(epoch, f"{total / len(loader):.6f}")
print(torch.randint(1000, (4,)).tolist())

# Epochs over a DataLoader of this process with a seeded shuffle, and an evaluation over a second loader in between.
# expect: compiled>=0.45, traces>=1
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset, random_split

torch.manual_seed(82)
x = torch.randn(72, 4)
data = TensorDataset(x, (x[:, 0] * x[:, 1] > 0).long())
train, test = random_split(data, [56, 16], generator=torch.Generator().manual_seed(1))
loader = DataLoader(train, batch_size=8, shuffle=True, generator=torch.Generator().manual_seed(2))
checker = DataLoader(test, batch_size=8)
model = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 2))
optimizer = torch.optim.Adam(model.parameters(), lr=0.02)
for epoch in range(6):
    model.train()
    losses = 0.0
    for inputs, labels in loader:
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(inputs), labels)
        loss.backward()
        optimizer.step()
        losses += loss.item() * len(labels)
    model.eval()
    with torch.no_grad():
        right = sum((model(inputs).argmax(1) == labels).sum().item() for inputs, labels in checker)
    if epoch % 2:
        print(epoch, f"{losses / len(train):.4f}", right)

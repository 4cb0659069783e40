# An evaluation loop under no_grad, in eval mode, between training epochs.
# expect: compiled>=0.25
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(6, 10), nn.BatchNorm1d(10), nn.ReLU(), nn.Dropout(0.3), nn.Linear(10, 3))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
batches = [(torch.randn(12, 6), torch.randint(3, (12,))) for _ in range(8)]
for epoch in range(6):
    model.train()
    for x, y in batches:
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(x), y).backward()
        optimizer.step()
    model.eval()
    correct, loss = 0, 0.0
    with torch.no_grad():
        for x, y in batches:
            out = model(x)
            assert not out.requires_grad
            correct += (out.argmax(1) == y).sum().item()
            loss += nn.functional.cross_entropy(out, y).item()
    print(epoch, correct, f"{loss:.5f}", torch.is_grad_enabled(), model.training)

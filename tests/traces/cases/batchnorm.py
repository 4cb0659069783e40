# BatchNorm's running statistics and its batch counter are written in each training step.
# expect: compiled>=0.19
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(8, 6), nn.BatchNorm1d(6), nn.ReLU(), nn.Linear(6, 2))
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
data = [torch.randn(16, 8) for _ in range(5)]
for i in range(60):
    optimizer.zero_grad()
    loss = model(data[i % 5]).pow(2).mean()
    loss.backward()
    optimizer.step()
print(f"{loss.item():.6g}", model[1].num_batches_tracked)
print([f"{v:.5f}" for v in model[1].running_mean.tolist()], [f"{v:.5f}" for v in model[1].running_var.tolist()])
model.eval()
print(f"{model(data[0]).sum().item():.6f}")

# bfloat16 autocast around forward and loss.
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(16, 16), nn.ReLU(), nn.Linear(16, 4))
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
x, y = torch.randn(8, 16), torch.randint(4, (8,))
for i in range(30):
    optimizer.zero_grad()
    with torch.autocast("cpu", dtype=torch.bfloat16):
        out = model(x)
        loss = nn.functional.cross_entropy(out, y)
    loss.backward()
    optimizer.step()
print(out.dtype, loss.dtype, f"{loss.item():.2f}", torch.is_autocast_enabled("cpu"))

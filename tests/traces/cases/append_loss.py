# loss.detach() is kept in a list in each iteration: the tensors leave the trace.
# expect: compiled>=0.85
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Linear(4, 3)
optimizer = torch.optim.Adam(model.parameters(), lr=0.05)
x, y = torch.randn(10, 4), torch.randint(3, (10,))
losses = []
for i in range(50):
    optimizer.zero_grad()
    loss = nn.functional.cross_entropy(model(x), y)
    loss.backward()
    optimizer.step()
    losses.append(loss.detach())
history = torch.stack(losses)
print(history.shape, history.requires_grad, f"{history.mean().item():.6f}")
print([f"{v:.5f}" for v in history[::5].tolist()])
print(len({l.data_ptr() for l in losses}))

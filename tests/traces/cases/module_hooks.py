# Forward hooks, pre-hooks and full backward hooks run at their place in each iteration.
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(4, 5), nn.ReLU(), nn.Linear(5, 2))
events = []
model[0].register_forward_hook(lambda m, args, out: events.append(("forward", tuple(out.shape))))
model[2].register_forward_pre_hook(lambda m, args: (args[0] * 0.5,))
model[2].register_full_backward_hook(lambda m, gi, go: events.append(("backward", f"{go[0].sum().item():.5f}")))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
x = torch.randn(6, 4)
for i in range(40):
    optimizer.zero_grad()
    loss = model(x).pow(2).mean()
    loss.backward()
    optimizer.step()
    if i == 20:
        handle = model.register_forward_hook(lambda m, args, out: out * 2)
    if i == 30:
        handle.remove()
print(len(events), events[:4], events[-2:])
print(f"{loss.item():.6f}")

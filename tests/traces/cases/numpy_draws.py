# NumPy's random numbers drawn between graphs in a script's own variables: the trace goes on, since nobody looks at the graphs.
# expect: compiled>=0.9
import numpy as np
import torch
from torch import nn

np.random.seed(3)
torch.manual_seed(3)
rng = np.random.default_rng(5)
model, critic = nn.Linear(6, 8), nn.Sequential(nn.Linear(8, 8), nn.Tanh(), nn.Linear(8, 1))
optimizer = torch.optim.SGD([*model.parameters(), *critic.parameters()], lr=0.05)
for step in range(120):
    z = torch.tensor(np.random.normal(0, 1, (5, 6)), dtype=torch.float32)
    made = model(z)
    real = critic(torch.tensor(rng.standard_normal((5, 8)), dtype=torch.float32))
    fake = critic(made)
    share = np.random.random()
    loss = (share * real.mean() - fake.mean()) ** 2 + 0.01 * made.square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 20 == 0:
        print(step, f"{loss.item():.5f}", np.random.randint(0, 10), f"{np.random.uniform():.4f}")
print(f"{sum(p.sum().item() for p in critic.parameters()):.5f}")

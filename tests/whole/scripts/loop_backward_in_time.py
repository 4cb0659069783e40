# A loop backwards in time with range(n - 1, -1, -1): discounted returns and generalised advantages.
# expect: compiled>=0.8, traces>=1
import torch

torch.manual_seed(94)
sums = []
for episode in range(20):
    length = 8
    rewards, values = torch.randn(length, 3), torch.randn(length + 1, 3)
    done = torch.rand(length, 3) < 0.1
    advantages = torch.zeros(length, 3)
    last = torch.zeros(3)
    for t in range(length - 1, -1, -1):
        alive = (~done[t]).float()
        delta = rewards[t] + 0.99 * values[t + 1] * alive - values[t]
        last = delta + 0.99 * 0.95 * alive * last
        advantages[t] = last
    normal = (advantages - advantages.mean()) / (advantages.std() + 1e-8)
    sums.append((advantages.sum().item(), normal[0].sum().item()))
print([f"{a:.3f} {n:.3f}" for a, n in sums[::5]])

# REINFORCE with torch.distributions on a bandit: actions are sampled, log-probabilities kept until the episode ends.
# expect: compiled>=0.25, traces>=1
import torch
from torch import nn
from torch.distributions import Categorical

torch.manual_seed(166)
policy = nn.Linear(2, 3)
optimizer = torch.optim.Adam(policy.parameters(), lr=0.05)
baseline, rewards_seen = 0.0, []
for episode in range(40):
    log_probs, rewards = [], []
    state = torch.randn(2)
    for t in range(4):
        distribution = Categorical(logits=policy(state))
        action = distribution.sample()
        log_probs.append(distribution.log_prob(action))
        rewards.append(1.0 if action.item() == (0 if state[0] > 0 else 2) else 0.0)
        state = torch.randn(2)
    advantage = sum(rewards) - baseline
    baseline = 0.9 * baseline + 0.1 * sum(rewards)
    loss = -advantage * torch.stack(log_probs).sum()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    rewards_seen.append(sum(rewards))
print(rewards_seen[::4], f"{baseline:.4f}", f"{policy.weight.sum().item():.4f}")

# Reinforcement learning: toy worlds in Python, returns, advantages and the usual algorithms.
import random
from collections import deque, namedtuple
from torch.distributions import Categorical, Normal

random.seed(0)


class Walk:
    def __init__(self, size=5):
        self.size = size

    def reset(self):
        self.place, self.time = self.size // 2, 0
        return self.observe()

    def observe(self):
        return F.one_hot(torch.tensor(self.place), self.size).float()

    def step(self, action):
        self.place += 1 if action == 1 else -1
        self.time += 1
        done = self.place in (0, self.size - 1) or self.time >= 6
        self.place = min(max(self.place, 0), self.size - 1)
        return self.observe(), float(self.place == self.size - 1), done


env = Walk()
policy = nn.Sequential(nn.Linear(5, 12), nn.Tanh(), nn.Linear(12, 2))
value = nn.Sequential(nn.Linear(5, 12), nn.Tanh(), nn.Linear(12, 1))
opt = torch.optim.Adam([*policy.parameters(), *value.parameters()], lr=1e-3)

# %% reinforce
def finish(log_probs, rewards, gamma=0.9):
    R, returns = 0.0, deque()
    for r in rewards[::-1]:
        R = r + gamma * R
        returns.appendleft(R)
    returns = torch.tensor(returns) - 0.3
    loss = torch.stack([-p * R for p, R in zip(log_probs, returns)]).sum()
    opt.zero_grad()
    loss.backward()
    opt.step()


wins = 0
for epoch in range(EPOCHS):
    for i in range(STEPS):
        state, done, log_probs, rewards = env.reset(), False, [], []
        while not done:
            dist = Categorical(logits=policy(state))
            action = dist.sample()
            log_probs.append(dist.log_prob(action))
            state, reward, done = env.step(action.item())
            rewards.append(reward)
        wins += rewards[-1] > 0
        finish(log_probs, rewards)
    mark()
print(wins, policy(env.reset()).softmax(0).tolist())

# %% actor_critic_saved_actions
SavedAction = namedtuple("SavedAction", ["log_prob", "value"])


class Agent(nn.ModuleDict):
    saved_actions, rewards = [], []

    def forward(self, x):
        x = F.relu(self.affine(x))
        return F.softmax(self.action_head(x), dim=-1), self.value_head(x)


agent = Agent({"affine": nn.Linear(5, 12), "action_head": nn.Linear(12, 2),
               "value_head": nn.Linear(12, 1)})
opt = torch.optim.Adam(agent.parameters(), lr=1e-3)
for epoch in range(EPOCHS):
    for i in range(STEPS):
        state = env.reset()
        for t in range(2):
            probs, v = agent(state)
            m = Categorical(probs)
            action = m.sample()
            agent.saved_actions.append(SavedAction(m.log_prob(action), v))
            state, reward, done = env.step(action.item())
            agent.rewards.append(reward)
        returns = [sum(agent.rewards[k:]) for k in range(len(agent.rewards))]
        losses = [-p * (R - v.item()) + F.smooth_l1_loss(v, torch.tensor([R]))
                  for (p, v), R in zip(agent.saved_actions, returns)]
        opt.zero_grad()
        torch.stack(losses).sum().backward()
        opt.step()
        del agent.rewards[:], agent.saved_actions[:]
    mark()
print(probs.tolist(), v.item())

# %% deep_q_learning
online, target = nn.Linear(5, 2), nn.Linear(5, 2)
target.load_state_dict(online.state_dict())
opt = torch.optim.SGD(online.parameters(), lr=0.05)
memory, state, goals = deque(maxlen=100), env.reset(), 0
for epoch in range(EPOCHS):
    epsilon = 1.0 - 0.08 * epoch
    for i in range(STEPS):
        with torch.no_grad():
            greedy = online(state).argmax().item()
        action = random.randrange(2) if random.random() < epsilon else greedy
        after, reward, done = env.step(action)
        memory.append((state, action, reward, after, done))
        goals += reward > 0
        state = env.reset() if done else after
        s, a, r, n, d = zip(*random.choices(memory, k=8))
        q = online(torch.stack(s)).gather(1, torch.tensor(a)[:, None]).squeeze(1)
        with torch.no_grad():
            best = target(torch.stack(n)).max(1)[0]
            y = torch.tensor(r) + 0.9 * best * (1 - torch.tensor(d, dtype=torch.float32))
        loss = F.smooth_l1_loss(q, y)
        opt.zero_grad()
        loss.backward()
        opt.step()
        if i % 25 == 24:
            target.load_state_dict(online.state_dict())
    mark()
print(q.sum().item(), online.weight.tolist()[1], len(memory))

# %% ppo_clipped_updates
clip = 0.2
for epoch in range(EPOCHS):
    states = torch.eye(5)[torch.randint(0, 5, (16,))]
    with torch.no_grad():
        old = Categorical(logits=policy(states))
        actions = old.sample()
        before = old.log_prob(actions)
        gain = (actions == (states.argmax(1) % 2)).float() - value(states).squeeze(1)
    for i in range(STEPS):
        index = torch.randperm(16)[:8]
        dist = Categorical(logits=policy(states[index]))
        ratio = (dist.log_prob(actions[index]) - before[index]).exp()
        a = gain[index]
        surrogate = torch.min(ratio * a, ratio.clamp(1 - clip, 1 + clip) * a)
        critic = F.mse_loss(value(states[index]).squeeze(1), a + 0.1)
        loss = -surrogate.mean() + 0.5 * critic - 0.01 * dist.entropy().mean()
        opt.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(policy.parameters(), 0.5)
        opt.step()
    mark()
print(loss.item(), ratio.mean().item())

# %% advantage_estimation
def gae(rewards, values, dones, gamma=0.95, lam=0.9):
    advantages, last = torch.zeros_like(rewards), torch.zeros(rewards.shape[1])
    for t in reversed(range(len(rewards))):
        after = values[t + 1] * (1 - dones[t])
        delta = rewards[t] + gamma * after - values[t]
        last = delta + gamma * lam * (1 - dones[t]) * last
        advantages[t] = last
    return advantages, advantages + values[:-1]


states = torch.randn(9, 4, 5)
for epoch in range(EPOCHS):
    for i in range(STEPS):
        rewards = torch.sin(states[1:, :, 0] + i)
        dones = (states[1:, :, 1] > 1.2).float()
        with torch.no_grad():
            v = value(states).squeeze(-1)
            advantages, returns = gae(rewards, v, dones)
        loss = F.mse_loss(value(states[:-1]).squeeze(-1), returns)
        opt.zero_grad()
        loss.backward()
        opt.step()
    mark()
print(loss.item(), advantages.mean(1).tolist())

# %% vectorized_environments
place = torch.full((6,), 2)
score = torch.zeros(6)
for epoch in range(EPOCHS):
    for i in range(STEPS):
        obs = F.one_hot(place, 5).float()
        dist = Categorical(logits=policy(obs))
        action = dist.sample()
        place = place + 2 * action - 1
        reward, done = (place == 4).float(), (place <= 0) | (place >= 4)
        place = torch.where(done, 2, place)
        score += reward
        target = reward + 0.9 * value(F.one_hot(place, 5).float()).squeeze(1).detach() * ~done
        advantage = target - value(obs).squeeze(1)
        loss = advantage.pow(2).mean() - (dist.log_prob(action) * advantage.detach()).mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
    mark()
print(score.tolist(), value(obs).sum().item())

# %% continuous_actions_soft_targets
actor, q = nn.Linear(5, 2), nn.Sequential(nn.Linear(6, 12), nn.ReLU(), nn.Linear(12, 1))
slow = nn.Sequential(nn.Linear(6, 12), nn.ReLU(), nn.Linear(12, 1)).requires_grad_(False)
slow.load_state_dict(q.state_dict())
actor_opt = torch.optim.Adam(actor.parameters(), lr=1e-3)
q_opt = torch.optim.Adam(q.parameters(), lr=1e-3)
states = torch.randn(STEPS + 1, 4, 5)
for epoch in range(EPOCHS):
    for i in range(STEPS):
        mean, log_std = actor(states[i]).chunk(2, dim=1)
        dist = Normal(mean, log_std.clamp(-2, 1).exp())
        action = torch.tanh(dist.rsample())
        reward = -(action.detach() - states[i][:, :1]).pow(2)
        y = reward + 0.9 * slow(torch.cat([states[i + 1], action.detach()], 1))
        q_loss = F.mse_loss(q(torch.cat([states[i], action.detach()], 1)), y)
        q_opt.zero_grad()
        q_loss.backward()
        q_opt.step()
        actor_loss = -q(torch.cat([states[i], action], 1)).mean()
        actor_opt.zero_grad()
        actor_loss.backward()
        actor_opt.step()
        for s, p in zip(slow.parameters(), q.parameters()):
            s.data.mul_(0.99).add_(0.01 * p.data)
    mark()
print(q_loss.item(), actor_loss.item())

# %% bandit_and_tabular
estimates, pulls = torch.zeros(5), torch.zeros(5, dtype=torch.long)
means = torch.linspace(0, 1, 5)
table = torch.zeros(5, 2)
for epoch in range(EPOCHS):
    state = 2
    for i in range(STEPS):
        bonus = (2 * torch.log(pulls.sum() + 1.0) / (pulls + 1)).sqrt()
        arm = int((estimates + 0.5 * bonus).argmax())
        reward = means[arm] + 0.1 * torch.randn(())
        pulls[arm] += 1
        estimates[arm] += (reward - estimates[arm]) / pulls[arm]
        action = 1 if random.random() < 0.3 else table[state].argmax().item()
        after = max(0, min(4, state + 2 * action - 1))
        goal = float(after == 4) + 0.9 * table[after].max() * (after != 4)
        table[state, action] += 0.1 * (goal - table[state, action])
        state = 2 if after in (0, 4) else after
    mark()
print(pulls.tolist(), estimates.tolist(), table.sum().item())

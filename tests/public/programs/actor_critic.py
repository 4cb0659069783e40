"""An actor-critic on a pole, after pytorch/examples' reinforcement_learning/actor_critic.py."""

from collections import namedtuple
from itertools import count

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
import torch.optim as optim
from torch.distributions import Categorical

from synthetic import Pole

SavedAction = namedtuple("SavedAction", ["log_prob", "value"])
GAMMA = 0.99
env = Pole(3)
torch.manual_seed(3)


class Policy(nn.Module):
    """Both actor and critic, on one layer."""

    def __init__(self):
        super().__init__()
        self.affine1 = nn.Linear(4, 48)
        self.action_head = nn.Linear(48, 2)
        self.value_head = nn.Linear(48, 1)
        self.saved_actions = []
        self.rewards = []

    def forward(self, x):
        x = F.relu(self.affine1(x))
        return F.softmax(self.action_head(x), dim=-1), self.value_head(x)


model = Policy()
optimizer = optim.Adam(model.parameters(), lr=2e-2)
eps = np.finfo(np.float32).eps.item()


def select_action(state):
    probs, state_value = model(torch.tensor(state).float())
    m = Categorical(probs)
    action = m.sample()
    model.saved_actions.append(SavedAction(m.log_prob(action), state_value))
    return action.item()


def finish_episode():
    R = 0
    saved_actions = model.saved_actions
    policy_losses, value_losses, returns = [], [], []
    for r in model.rewards[::-1]:
        R = r + GAMMA * R
        returns.insert(0, R)
    returns = torch.tensor(returns)
    returns = (returns - returns.mean()) / (returns.std() + eps)
    for (log_prob, value), R in zip(saved_actions, returns):
        advantage = R - value.item()
        policy_losses.append(-log_prob * advantage)
        value_losses.append(F.smooth_l1_loss(value, torch.tensor([R])))
    optimizer.zero_grad()
    loss = torch.stack(policy_losses).sum() + torch.stack(value_losses).sum()
    loss.backward()
    optimizer.step()
    del model.rewards[:]
    del model.saved_actions[:]
    return loss


running_reward = 10
for i_episode in count(1):
    state, ep_reward = env.reset(), 0
    for t in range(1, 10000):
        action = select_action(state)
        state, reward, fell, over = env.step(action)
        model.rewards.append(reward)
        ep_reward += reward
        if fell or over:
            break
    running_reward = 0.05 * ep_reward + (1 - 0.05) * running_reward
    loss = finish_episode()
    if i_episode % 10 == 0:
        print("Episode {}\tLast reward: {:.2f}\tAverage reward: {:.2f}\tloss {:.3f}".format(i_episode, ep_reward, running_reward, loss.item()))
    if running_reward > 40 or i_episode >= 60:
        print("Done: running reward is {:.3f} after {} episodes".format(running_reward, i_episode))
        break

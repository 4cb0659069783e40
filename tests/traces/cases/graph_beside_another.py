# A graph that lives on in an object while backward() frees another one, and what leads to it: descriptors in Python, setattr, dicts with tuples of classes as keys, sums of shapes.
# expect: compiled>=0.85
import torch
from torch import nn
from torch.distributions import Categorical, Normal, kl_divergence

torch.manual_seed(2)
actor, critic = nn.Linear(5, 4), nn.Linear(7, 1)
actor_opt, critic_opt = torch.optim.SGD(actor.parameters(), lr=0.02), torch.optim.SGD(critic.parameters(), lr=0.02)
states = torch.randn(8, 5)
for i in range(60):
    mean, log_std = actor(states).chunk(2, dim=1)
    dist = Normal(mean, log_std.clamp(-2, 1).exp())
    action = torch.tanh(dist.rsample())
    critic_loss = (critic(torch.cat([states, action.detach()], 1)) - 0.5).pow(2).mean()
    critic_opt.zero_grad()
    critic_loss.backward()
    critic_opt.step()
    actor_loss = -critic(torch.cat([states, action], 1)).mean() - 0.01 * dist.log_prob(action.detach()).mean()
    actor_opt.zero_grad()
    actor_loss.backward()
    actor_opt.step()
print("actor and critic", f"{critic_loss.item():.4f}", f"{actor_loss.item():.4f}", dist.loc.grad_fn is not None, dist.batch_shape)

prior = Normal(torch.zeros(2), torch.ones(2))
for i in range(60):
    mean, log_std = actor(states).split(2, dim=1)
    loss = kl_divergence(Normal(mean, log_std.exp()), prior).mean() + kl_divergence(Categorical(logits=mean), Categorical(probs=torch.ones(2) / 2)).mean()
    actor_opt.zero_grad()
    loss.backward()
    actor_opt.step()
print("divergences", f"{loss.item():.4f}")


class Lazy:
    def __init__(self, function):
        self.function = function

    def __get__(self, instance, owner=None):
        if instance is None:
            return self
        with torch.enable_grad():
            value = self.function(instance)
        setattr(instance, self.function.__name__, value)
        return value


class Logits:
    def __init__(self, x):
        self.x = x

    @Lazy
    def probs(self):
        return torch.softmax(self.x, 1)


kept = []
for i in range(60):
    out = Logits(actor(states))
    loss = (out.probs * out.probs.log()).sum(1).mean()
    actor_opt.zero_grad()
    loss.backward()
    actor_opt.step()
    kept.append(sorted(vars(out)))
print("lazy", f"{loss.item():.4f}", kept[-1], type(Logits.probs).__name__)

for i in range(60):
    stored = Logits(actor(states) * 2)
    side = critic(torch.ones(2, 7)).sum()
    critic_opt.zero_grad()
    side.backward()
    if i % 9 == 4:
        try:
            side.backward()
        except RuntimeError:
            kept.append(i)
    loss = stored.x.pow(2).mean()
    actor_opt.zero_grad()
    loss.backward()
    actor_opt.step()
    critic_opt.step()
print("stored beside", f"{loss.item():.4f}", kept[-5:], f"{side.item():.4f}")

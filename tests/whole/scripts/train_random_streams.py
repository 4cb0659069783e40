# randn, randperm, bernoulli, multinomial and dropout from one seed, with the state saved, restored and forked in the loop.
# expect: compiled>=0.25, traces>=1
import torch
import torch.nn.functional as F

torch.manual_seed(158)
sums, replays = [], 0
state = torch.get_rng_state()
for step in range(50):
    if step % 10 == 0:
        state = torch.get_rng_state()
    noise = torch.randn(4)
    order = torch.randperm(6)
    coins = torch.bernoulli(torch.full((5,), 0.3))
    picks = torch.multinomial(torch.tensor([0.2, 0.5, 0.3]), 2)
    kept = F.dropout(noise, 0.5, training=step % 2 == 0)
    with torch.random.fork_rng():
        torch.manual_seed(step)
        side = torch.rand(2).sum()
    sums.append((kept.sum() + coins.sum() + order[0] + picks[0] + side).item())
    if step % 10 == 9:
        after = torch.get_rng_state()
        torch.set_rng_state(state)
        replays += torch.equal(torch.randn(4), torch.randn(4))
        torch.set_rng_state(after)
print([f"{s:.4f}" for s in sums[::7]], replays, f"{torch.rand(1).item():.5f}")

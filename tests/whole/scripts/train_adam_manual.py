# Adam written out by hand beside torch.optim.Adam: both must walk the same way.
# expect: compiled>=0.6, traces>=1
import torch
from torch import nn


class HandAdam:
    def __init__(self, parameters, lr=0.01, betas=(0.9, 0.999), eps=1e-8):
        self.parameters, self.lr, self.betas, self.eps, self.step_count = list(parameters), lr, betas, eps, 0
        self.state = {p: (torch.zeros_like(p), torch.zeros_like(p)) for p in self.parameters}

    @torch.no_grad()
    def step(self):
        self.step_count += 1
        b1, b2 = self.betas
        for p in self.parameters:
            m, v = self.state[p]
            m.mul_(b1).add_(p.grad, alpha=1 - b1)
            v.mul_(b2).addcmul_(p.grad, p.grad, value=1 - b2)
            p.addcdiv_(m / (1 - b1 ** self.step_count), (v / (1 - b2 ** self.step_count)).sqrt() + self.eps, value=-self.lr)


torch.manual_seed(141)
first, second = nn.Linear(4, 2), nn.Linear(4, 2)
second.load_state_dict(first.state_dict())
ours, theirs = HandAdam(first.parameters()), torch.optim.Adam(second.parameters(), lr=0.01)
x, y = torch.randn(10, 4), torch.randn(10, 2)
for step in range(50):
    for model, optimizer in ((first, ours), (second, theirs)):
        model.zero_grad()
        loss = nn.functional.mse_loss(model(x), y)
        loss.backward()
        optimizer.step()
print((first.weight - second.weight).abs().max().item() < 1e-5, f"{loss.item():.5f}", f"{first.weight.sum().item():.5f}")

# Mixing weights in a ParameterList and gates in a ParameterDict, used by index and by name in a small mixture.
# expect: compiled>=0.9, traces>=1
import torch
from torch import nn


class Mixture(nn.Module):
    def __init__(self, parts, width):
        super().__init__()
        self.centres = nn.ParameterList([nn.Parameter(torch.randn(width)) for _ in range(parts)])
        self.gates = nn.ParameterDict({"bias": nn.Parameter(torch.zeros(parts)), "sharpness": nn.Parameter(torch.tensor(1.0))})

    def forward(self, x):
        distances = torch.stack([(x - centre).pow(2).sum(-1) for centre in self.centres], dim=-1)
        return torch.logsumexp(self.gates["bias"].log_softmax(0) - distances * self.gates["sharpness"].abs(), dim=-1)


torch.manual_seed(7)
data = torch.cat([torch.randn(8, 2) * 0.2 + 1, torch.randn(8, 2) * 0.2 - 1])
mixture = Mixture(3, 2)
optimizer = torch.optim.Adam(mixture.parameters(), lr=0.05)
history = []
for step in range(60):
    optimizer.zero_grad()
    loss = -mixture(data).mean()
    loss.backward()
    optimizer.step()
    if step % 20 == 19:
        history.append(round(loss.item(), 3))
print(history, len(mixture.centres), sorted(mixture.gates.keys()))
print([f"{c.sum().item():.3f}" for c in mixture.centres])

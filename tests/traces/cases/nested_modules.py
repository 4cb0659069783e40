# Modules in modules, in ModuleList, ModuleDict and ParameterList, with *args and keyword arguments.
# expect: compiled>=0.25
import torch
from torch import nn


class Inner(nn.Module):
    def __init__(self, n, activation="relu"):
        super().__init__()
        self.lin = nn.Linear(n, n)
        self.activation = activation

    def forward(self, x, *rest, scale=1.0):
        x = getattr(torch, self.activation)(self.lin(x)) * scale
        for r in rest:
            x = x + r
        return x


class Outer(nn.Module):
    def __init__(self):
        super().__init__()
        self.items = nn.ModuleList(Inner(6, a) for a in ("relu", "tanh", "sigmoid"))
        self.named = nn.ModuleDict({"a": Inner(6), "b": Inner(6, "tanh")})
        self.shifts = nn.ParameterList([nn.Parameter(torch.randn(6)) for _ in range(2)])

    def forward(self, x):
        for k, item in enumerate(self.items):
            x = item(x, *self.shifts[:k], scale=1 + 0.1 * k)
        return sum(m(x) for m in self.named.values())


torch.manual_seed(0)
model = Outer()
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
x = torch.randn(5, 6)
for i in range(40):
    optimizer.zero_grad()
    loss = (model(x) - 1).square().mean()
    loss.backward()
    optimizer.step()
    if i % 10 == 0:
        print(f"{loss.item():.6f}")
print(f"{sum(p.sum().item() for p in model.parameters()):.5f}")

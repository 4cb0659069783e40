# One weight used as embedding and as output layer: its gradient is a sum.
# expect: compiled>=0.85
import torch
from torch import nn


class Tied(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(12, 6)
        self.head = nn.Linear(6, 12, bias=False)
        self.head.weight = self.embedding.weight

    def forward(self, t):
        return self.head(torch.tanh(self.embedding(t)))


torch.manual_seed(0)
model = Tied()
print(len(list(model.parameters())))
optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
t = torch.randint(12, (5, 7))
for i in range(50):
    optimizer.zero_grad()
    loss = nn.functional.cross_entropy(model(t[:, :-1]).reshape(-1, 12), t[:, 1:].reshape(-1))
    loss.backward()
    optimizer.step()
print(f"{loss.item():.6f} {model.head.weight.sum().item():.6f}", model.head.weight.grad is model.embedding.weight.grad)

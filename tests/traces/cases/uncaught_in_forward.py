# An exception of the user's, raised in forward at iteration 30 with a cause: the whole traceback is compared.
import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(3, 3)
        self.calls = 0

    def forward(self, x):
        self.calls += 1
        y = self.lin(x)
        if self.calls > 30:
            try:
                {}["missing"]
            except KeyError as error:
                raise ValueError(f"call {self.calls}") from error
        return y


torch.manual_seed(0)
net = nn.Sequential(Net(), nn.ReLU())
for i in range(60):
    out = net(torch.ones(2, 3))

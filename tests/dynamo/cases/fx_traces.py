# torch.fx traces modules again and again in a hot loop: the graphs are the same each time, and as python's.
import torch
import torch.fx

torch.manual_seed(0)


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = torch.nn.Linear(4, 4)
        self.scale = torch.nn.Parameter(torch.ones(4))

    def forward(self, x, n=2):
        y = self.linear(x) * self.scale
        for _ in range(n):
            y = torch.relu(y) + x.sum()
        return y.view(-1)


net = Net()
texts = []
total = torch.zeros(())
for i in range(40):
    graph = torch.fx.symbolic_trace(net, concrete_args={"n": i % 3})
    texts.append(graph.code)
    total = total + graph(torch.ones(2, 4), i % 3).sum()
print(len(set(texts)), texts[0], texts[-1], total)


def f(x):
    return x.sin() + torch.cos(x) * 2


for i in range(40):
    total = total + torch.fx.symbolic_trace(f)(torch.full((2,), float(i))).sum()
print(total, torch.fx.symbolic_trace(f).code)

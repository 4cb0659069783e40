# torch.export, its module in a loop, and draft runs of a module before and after.
import torch

torch.manual_seed(0)


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = torch.nn.Linear(4, 4)

    def forward(self, x):
        return torch.relu(self.linear(x)) + x.shape[0]


net = Net()
total = torch.zeros(())
for i in range(40):
    total = total + net(torch.ones(3, 4) * i).sum()
program = torch.export.export(net, (torch.ones(3, 4),), dynamic_shapes=({0: torch.export.Dim("batch")},))
module = program.module()
for i in range(40):
    total = total + module(torch.ones(3 + i % 2, 4)).sum()
print(total)
print(program.graph)
for i in range(3):
    print(len(list(torch.export.export(net, (torch.ones(2, 4),)).graph.nodes)))

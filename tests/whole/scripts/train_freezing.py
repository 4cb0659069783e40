# Gradual unfreezing: layers start frozen and are thawed one by one, each time with a new optimizer over what is trainable.
# expect: compiled>=0.75, traces>=1
import torch
from torch import nn

torch.manual_seed(150)
net = nn.Sequential(nn.Linear(4, 6), nn.ReLU(), nn.Linear(6, 6), nn.ReLU(), nn.Linear(6, 2))
stages = [net[4], net[2], net[0]]
net.requires_grad_(False)
x, y = torch.randn(14, 4), torch.arange(14) % 2
before = [layer.weight.clone() for layer in stages]
for stage, layer in enumerate(stages):
    layer.requires_grad_(True)
    trainable = [p for p in net.parameters() if p.requires_grad]
    optimizer = torch.optim.SGD(trainable, lr=0.2)
    for step in range(25):
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(net(x), y)
        loss.backward()
        optimizer.step()
    moved = [not torch.equal(old, layer.weight) for old, layer in zip(before, stages)]
    print(stage, len(trainable), moved, f"{loss.item():.5f}")

# A convolutional network with group normalisation and pooling, contiguous and channels last: windows without padding are kernels, with padding calls.
# expect: compiled>=0.7
import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(0)


def batches():
    return [(torch.randn(6, 1, 12, 12), torch.randint(0, 3, (6,))) for _ in range(4)]


def train(layout):
    net = nn.Sequential(nn.Conv2d(1, 8, 3, padding=1), nn.GroupNorm(2, 8), nn.SiLU(), nn.MaxPool2d(2), nn.Conv2d(8, 8, 3, padding=1), nn.GroupNorm(4, 8), nn.ReLU(), nn.AvgPool2d(2),
                        nn.MaxPool2d(3, 1, 1), nn.AdaptiveAvgPool2d((1, 3)), nn.Flatten(), nn.Linear(24, 3)).to(memory_format=layout)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.02)
    data = batches()
    for step in range(40):
        x, y = data[step % len(data)]
        optimizer.zero_grad()
        loss = F.cross_entropy(net(x), y)
        loss.backward()
        optimizer.step()
        if step % 10 == 9:
            print(f"{loss.item():.2f}")
    with torch.no_grad():
        print(f"{net(data[0][0]).sum().item():.2f}")


train(torch.contiguous_format)
train(torch.channels_last)

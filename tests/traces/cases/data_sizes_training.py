# A loss over the elements that a mask selects, as with padded batches: its graph has sizes that data decides.
# expect: compiled>=0.8, open_sizes>=1
import torch
import torch.nn.functional as F
from torch import nn


def main():
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(12, 24), nn.ReLU(), nn.Linear(24, 5))
    optimizer = torch.optim.SGD(net.parameters(), lr=0.05, momentum=0.9)
    x = torch.randn(200, 12)
    t = (x[:, 0] > 0).long() + (x[:, 1] > 0).long() * 2
    losses = []
    for i in range(150):
        keep = torch.rand(200) < 0.3 + 0.4 * ((i * 37) % 11) / 11
        optimizer.zero_grad()
        logits = net(x)
        loss = F.cross_entropy(logits[keep], t[keep]) + logits[~keep].pow(2).mean() * 0.01
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    print([round(v, 3) for v in losses[::10]], round(losses[-1], 3))


main()

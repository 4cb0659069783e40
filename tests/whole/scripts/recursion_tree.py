# A recursive network over binary trees of words: nested tuples decide how deep each sample goes.
# expect: compiled>=0.8, traces>=1
import torch
from torch import nn


class TreeNet(nn.Module):
    def __init__(self, words, width):
        super().__init__()
        self.leaf = nn.Embedding(words, width)
        self.join = nn.Linear(2 * width, width)
        self.score = nn.Linear(width, 2)

    def encode(self, tree):
        if isinstance(tree, int):
            return self.leaf(torch.tensor(tree)), 1
        (left, m), (right, n) = self.encode(tree[0]), self.encode(tree[1])
        return torch.tanh(self.join(torch.cat([left, right]))), max(m, n) + 1

    def forward(self, tree):
        code, depth = self.encode(tree)
        return self.score(code), depth


torch.manual_seed(36)
trees = [((1, 2), 3), ((0, (4, 5)), (1, 1)), (2, 3)]
net = TreeNet(6, 4).eval()
sums = [0.0] * 3
depths = 0
with torch.no_grad():
    for step in range(60):
        k = step % 3
        scores, depth = net(trees[k])
        sums[k] += scores.softmax(-1)[0].item()
        depths += depth
        if step == 30:
            net.leaf.weight.mul_(0.5)
print(depths, [f"{s:.4f}" for s in sums])

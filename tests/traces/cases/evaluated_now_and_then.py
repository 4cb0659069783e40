# Training that is interrupted by an evaluation every few steps: train() and eval() change the namespaces of all modules, and change them back, so that what the traces
# assume of them is as it was, also where a trace begins in the middle of an iteration and where modules hold dicts, tuples and lists of theirs.
# expect: compiled>=0.97
import torch
from torch import nn

torch.manual_seed(0)


class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.up, self.down = nn.Linear(width, 2 * width), nn.Linear(2 * width, width)
        self.drop = nn.Dropout(0.1)
        self.scales = {"in": 0.5, "out": 0.25}
        self.sizes = [width, 2 * width]

    def forward(self, x):
        h = torch.relu(self.up(self.norm(x) * self.scales["in"]))
        assert h.shape[-1] == self.sizes[1]
        return x + self.drop(self.down(h)) * self.scales["out"]


model = nn.Sequential(nn.Linear(8, 16), *[Block(16) for _ in range(4)], nn.Linear(16, 3))
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
data, target = torch.randn(256, 8), torch.randint(0, 3, (256,))


def rate(step):
    if step < 40:
        return 1e-3 * (step + 1) / 40
    return 1e-3 * 0.999 ** step


@torch.no_grad()
def evaluate():
    model.eval()
    total = 0.0
    for k in range(6):
        total += nn.functional.cross_entropy(model(data[k * 32 : k * 32 + 32]), target[k * 32 : k * 32 + 32]).item()
    model.train()
    return total / 6


for step in range(900):
    for group in optimizer.param_groups:
        group["lr"] = rate(step)
    if step % 30 == 0:
        print(f"{step}: {evaluate():.3f}")
    rows = torch.randint(0, 256, (32,))
    loss = nn.functional.cross_entropy(model(data[rows]), target[rows])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(f"{loss.item():.3f} {evaluate():.3f}")
model[2].scales["out"] = 0.0  # what the traces do assume of a module's dict
for step in range(60):
    loss = nn.functional.cross_entropy(model(data[:32]), target[:32])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(f"{loss.item():.3f}")

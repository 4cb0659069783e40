# A graph that is rebuilt at an exit compares what it computes: which of several elements a maximum was. The script has some of its tensors already, which kernels have rounded otherwise.
# expect: traces>=1, side_exits>=1
import torch
import torch.nn as nn

torch.set_default_dtype(torch.float64)
torch.manual_seed(4)
STEPS, WIDTH, CELLS = 60, 32, 64
edge = nn.Sequential(nn.Conv2d(48, WIDTH, 1, bias=False), nn.BatchNorm2d(WIDTH))
points = torch.randn(8, CELLS, 48)
optimizer = torch.optim.SGD(edge.parameters(), lr=1e-3)
cell = torch.randint(0, CELLS, (8, CELLS)).unsqueeze(-1).expand(-1, -1, WIDTH)


def pool(x):
    strongest = edge(x.view(8, CELLS, 1, 48).permute(0, 3, 1, 2)).max(dim=-1)[0]
    return torch.zeros(8, CELLS, WIDTH).scatter_reduce(1, cell, strongest.transpose(1, 2), "amax").sum(1), strongest


for step in range(STEPS):
    if step == STEPS // 2:
        half = step
    pooled, strongest = pool(points)
    loss = pooled.mean()
    optimizer.zero_grad(set_to_none=step % 2 == 0)
    loss.backward()
    optimizer.step()
    if loss.item() != loss.item():
        print("NAN", step)
        break
    if step % 10 == 9:
        print(step, f"{loss.item():.4f}", f"{edge[0].weight.grad.norm().item():.4f}")

# torch.utils.checkpoint over some blocks of a stack, reentrant or not, and checkpoint_sequential; gradients are as without.
# expect: compiled>=0.15, traces>=1
import torch
from torch import nn
from torch.utils.checkpoint import checkpoint, checkpoint_sequential

torch.manual_seed(147)
blocks = nn.ModuleList(nn.Sequential(nn.Linear(5, 5), nn.Tanh()) for _ in range(3))
tail = nn.Sequential(nn.Linear(5, 5), nn.ReLU(), nn.Linear(5, 1))
optimizer = torch.optim.SGD([*blocks.parameters(), *tail.parameters()], lr=0.05)
x = torch.randn(6, 5)


def forward(x, mode):
    for k, block in enumerate(blocks):
        x = checkpoint(block, x, use_reentrant=mode == 2) if mode and k != 1 else block(x)
    return checkpoint_sequential(tail, 2, x, use_reentrant=False) if mode == 1 else tail(x)


grads = []
for step in range(30):
    optimizer.zero_grad()
    loss = (forward(x.clone().requires_grad_(), step % 3) - 1).pow(2).mean()
    loss.backward()
    grads.append(blocks[0][0].weight.grad.norm().item())
    optimizer.step()
print([f"{g:.5f}" for g in grads[::6]], f"{loss.item():.5f}")

# L-BFGS with a line search: step(closure) evaluates the closure as often as it needs.
# expect: compiled>=0.05, traces>=1
import torch
from torch import nn

torch.manual_seed(171)
x = torch.randn(20, 3)
labels = (x[:, 0] - 0.5 * x[:, 1] > 0).float().unsqueeze(1)
model = nn.Linear(3, 1)
optimizer = torch.optim.LBFGS(model.parameters(), lr=0.5, max_iter=4, history_size=5, line_search_fn="strong_wolfe")
calls, losses = 0, []


def closure():
    global calls
    calls += 1
    optimizer.zero_grad()
    loss = nn.functional.binary_cross_entropy_with_logits(model(x), labels) + 0.05 * model.weight.pow(2).sum()
    loss.backward()
    return loss


for step in range(8):
    losses.append(optimizer.step(closure).item())
print(calls > 8, [f"{v:.4f}" for v in losses], f"{model.bias.item():.3f}")

# clip_grad_norm_ with the returned norm deciding, clip_grad_value_, and clipping of each parameter by hand.
# expect: compiled>=0.7, traces>=1
import torch
from torch import nn
from torch.nn.utils import clip_grad_norm_, clip_grad_value_

torch.manual_seed(146)
rnn, head = nn.RNN(2, 6, batch_first=True), nn.Linear(6, 1)
parameters = [*rnn.parameters(), *head.parameters()]
optimizer = torch.optim.SGD(parameters, lr=0.1)
clipped, skipped, norms = 0, 0, []
for step in range(50):
    x = torch.randn(4, 7, 2) * (8 if step % 16 == 9 else 1)
    optimizer.zero_grad()
    loss = (head(rnn(x)[0][:, -1]) - x.sum((1, 2)).unsqueeze(1)).pow(2).mean()
    loss.backward()
    norm = clip_grad_norm_(parameters, max_norm=2.0)
    norms.append(norm.item())
    if norm > 30:
        skipped += 1
        continue
    clipped += norm.item() > 2.0
    clip_grad_value_(parameters, 0.5)
    for p in parameters:
        p.grad.mul_(min(1.0, 1.0 / (p.grad.norm().item() + 1e-6)))
    optimizer.step()
print(clipped, skipped, f"{sum(norms):.3f}", f"{sum(p.abs().sum().item() for p in parameters):.4f}")

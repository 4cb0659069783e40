# A training log with f-strings: nested widths, conversions, self-documenting expressions, tensors in format specs.
# expect: compiled>=0.55, traces>=1
import torch
from torch import nn

torch.manual_seed(38)
model = nn.Linear(3, 1)
x, width, lines = torch.randn(6, 3), 9, []
for step in range(40):
    loss = (model(x) - 1).pow(2).mean()
    model.zero_grad()
    loss.backward()
    with torch.no_grad():
        for name, p in model.named_parameters():
            p -= 0.1 * p.grad
    line = f"{step:>3d}|{loss:{width}.4f}|{loss.item():<10.3e}|{p.grad.norm().item():+.3f}|{tuple(x.shape)!s:^12}|{name!r}"
    lines.append(line)
    if step % 10 == 9:
        print(line, f"{step % 7 = }", f"{'good' if loss < 0.3 else 'bad':*^8}")
print(len("\n".join(lines)) > 1500, f"{loss.detach()}"[:6], f"{torch.tensor(7)}", f"{torch.tensor([1, 2])}")

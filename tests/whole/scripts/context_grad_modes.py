# no_grad, enable_grad and set_grad_enabled nested in one step: only the chosen part gets gradients.
# expect: compiled>=0.8, traces>=1
import torch
from torch import nn

torch.manual_seed(27)
teacher, student = nn.Linear(4, 3), nn.Linear(4, 3)
flags = []
x = torch.randn(10, 4)
for step in range(45):
    with torch.no_grad():
        target = teacher(x).softmax(-1)
        with torch.enable_grad():
            output = student(x).log_softmax(-1)
            flags.append((target.requires_grad, output.requires_grad))
    with torch.set_grad_enabled(step % 3 != 2):
        loss = nn.functional.kl_div(student(x).log_softmax(-1), target, reduction="batchmean")
        if torch.is_grad_enabled():
            loss.backward()
    with torch.no_grad():
        for p in student.parameters():
            if p.grad is not None:
                p -= 0.5 * p.grad
                p.grad = None
print(set(flags), loss.requires_grad, f"{loss.item():.5f}", [p.grad is None for p in student.parameters()])

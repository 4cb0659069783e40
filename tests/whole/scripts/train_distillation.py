# Distillation with a temperature: soft labels of a frozen teacher, hard labels, and agreement counted as training goes.
# expect: compiled>=0.5, traces>=1
import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(169)
teacher = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 3)).eval().requires_grad_(False)
student = nn.Linear(4, 3)
optimizer = torch.optim.SGD(student.parameters(), lr=0.3, momentum=0.9, nesterov=True)
agreement, T = [], 2.0
for step in range(60):
    x = torch.randn(12, 4)
    soft = F.softmax(teacher(x) / T, dim=-1)
    scores = student(x)
    distill = F.kl_div(F.log_softmax(scores / T, dim=-1), soft, reduction="batchmean") * T * T
    loss = 0.7 * distill + 0.3 * F.cross_entropy(scores, soft.argmax(-1))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    agreement.append((scores.argmax(-1) == soft.argmax(-1)).float().mean().item())
print([f"{sum(agreement[k:k + 15]) / 15:.4f}" for k in range(0, 60, 15)], f"{loss.item():.4f}")

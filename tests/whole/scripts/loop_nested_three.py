# Three nested loops with labels like continue-outer by flags: coordinate descent over blocks and sweeps.
# expect: traces>=1
import torch

torch.manual_seed(93)
a = torch.randn(8, 6)
b = torch.randn(8)
gram, moment = a.t() @ a, a.t() @ b
w = torch.zeros(6)
sweeps, skipped = 0, 0
for penalty in (2.0, 1.0, 0.3):
    for sweep in range(6):
        sweeps += 1
        moved = 0.0
        for j in range(6):
            rho = moment[j] - gram[j] @ w + gram[j, j] * w[j]
            new = torch.sign(rho) * torch.relu(rho.abs() - penalty) / gram[j, j]
            if torch.equal(new, w[j]):
                skipped += 1
                continue
            moved = max(moved, (new - w[j]).abs().item())
            w[j] = new
        if moved < 0.01:
            break
print(sweeps, skipped, (w == 0).sum().item(), [f"{v:.4f}" for v in w.tolist()])

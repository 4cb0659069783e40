# `while not converged`, where the condition is bool(tensor) and `tensor or tensor`: a fixed point with several starts.
# expect: compiled>=0.75, traces>=1
import torch

torch.manual_seed(73)
matrix = torch.rand(5, 5) * 0.3
bias = torch.rand(5)
counts = []
for start in range(6):
    x = torch.full((5,), float(start))
    steps = 0
    converged = torch.tensor(False)
    while not converged:
        new = torch.tanh(matrix @ x + bias)
        converged = (new - x).abs().max() < 1e-4
        x = new
        steps += 1
        if converged or steps == 50:
            break
    counts.append(steps)
print(counts, [f"{v:.4f}" for v in x.tolist()], bool(converged), not converged)

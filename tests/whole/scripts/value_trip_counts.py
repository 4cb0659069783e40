# Loops whose trip count comes from data: lengths in a tensor, and iterations until a residual is small.
# expect: compiled>=0.7, traces>=1
import torch

torch.manual_seed(75)
lengths = torch.randint(1, 6, (40,))
cell = torch.randn(4, 4) * 0.4
total, trips, refinements = torch.zeros(4), 0, 0
for sample in range(40):
    state = torch.zeros(4)
    for t in range(int(lengths[sample])):
        state = torch.tanh(cell @ state + 0.3 * t + 0.1)
        trips += 1
    root = state.abs() + 1
    guess = root
    while (residual := (guess * guess - root).abs().max().item()) > 1e-3:
        guess = 0.5 * (guess + root / guess)
        refinements += 1
    total += guess
print(trips, refinements, int(lengths.sum()), [f"{v:.4f}" for v in total.tolist()])

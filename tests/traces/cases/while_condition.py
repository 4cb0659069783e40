# while loops whose condition is a tensor.
# expect: compiled>=0.7
import torch

torch.manual_seed(0)
x = torch.rand(5) + 2
steps = 0
while x.max() > 1e-3:
    x = x * 0.9 - 1e-4
    steps += 1
print(steps, [f"{v:.6f}" for v in x.tolist()])
a, b = torch.tensor(1000.0), torch.tensor(0.0)
guess = a
while (guess * guess - a).abs() > 1e-2:
    guess = (guess + a / guess) / 2
    b += 1
print(f"{guess.item():.4f}", b.item())
count = torch.tensor(0)
while count < 40:
    count += 1
print(count)

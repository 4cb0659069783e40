# Random tensors made in the loop, the seed set again in the middle, and a generator of its own.
import torch

torch.manual_seed(5)
generator = torch.Generator().manual_seed(7)
total = torch.zeros(4)
for i in range(50):
    if i == 25:
        torch.manual_seed(5)
    noise = torch.randn(4) * 0.1 + torch.rand(4, generator=generator) - torch.randint(0, 3, (4,))
    total = total * 0.9 + noise
    picked = torch.bernoulli(torch.full((4,), 0.4)) + torch.randperm(4)
    total = total + 0.01 * picked
print([f"{v:.6f}" for v in total.tolist()])
print(torch.rand(2).tolist(), torch.rand(2, generator=generator).tolist())

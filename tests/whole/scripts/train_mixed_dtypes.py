# Master weights in float32, a bfloat16 copy for the forward pass, and a double accumulator for the statistics.
# expect: compiled>=0.85, traces>=1
import torch

torch.manual_seed(156)
master = torch.randn(6, 3)
x, target = torch.randn(10, 6), torch.randn(10, 3)
statistics = torch.zeros(3, dtype=torch.float64)
half_x = x.to(torch.bfloat16)
counts = torch.zeros(3, dtype=torch.int32)
for step in range(50):
    low = master.to(torch.bfloat16).requires_grad_()
    prediction = half_x @ low
    loss = (prediction.float() - target).pow(2).mean()
    loss.backward()
    master -= 0.2 * low.grad.float()
    statistics += prediction.detach().double().mean(0)
    counts += (prediction > 0).sum(0).int()
print(low.grad.dtype, statistics.dtype, counts.dtype, (counts * 2.5).dtype, (statistics + master[0]).dtype)
print(f"{loss.item():.2f}", [f"{v:.1f}" for v in statistics.tolist()])

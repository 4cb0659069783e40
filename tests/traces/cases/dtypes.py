# double, half, bfloat16, integers and bool in one loop, with promotion.
import torch

torch.manual_seed(0)
d = torch.randn(6, dtype=torch.float64)
h = torch.randn(6).half()
n = torch.arange(6)
m = torch.zeros(6, dtype=torch.bool)
for i in range(40):
    d = torch.sin(d + n * 0.1)
    h = (h * 0.5 + 0.25).clamp(-1, 1)
    n = (n * 3 + i) % 17
    m = (n > 8) ^ m
    mixed = d + h + n / 2 + m
    small = (n.to(torch.uint8) * 20).to(torch.int16) - 5
    q = n // 3 - torch.div(n, 4, rounding_mode="trunc") + (n << 1) % 5
print(mixed.dtype, [f"{v:.6f}" for v in mixed.tolist()], n.tolist(), m.tolist(), small.tolist(), q.tolist())
print(h.dtype, [f"{v:.3f}" for v in h.tolist()], (d.float() + d).dtype, (n + 0.5).dtype, (m + 1).dtype)

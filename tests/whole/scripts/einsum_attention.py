# Attention, a bilinear form and a tensor contraction written with einsum, with an ellipsis and with broadcasting.
# expect: compiled>=0.45, traces>=1
import torch

torch.manual_seed(65)
batch, heads, length, width = 2, 2, 5, 3
wq, wk, wv = (torch.randn(heads, 6, width) * 0.4 for _ in range(3))
form = torch.randn(6, 6) * 0.1
x = torch.randn(batch, length, 6)
energies = []
for step in range(40):
    q, k, v = (torch.einsum("...lc,hcd->...hld", x, w) for w in (wq, wk, wv))
    scores = torch.einsum("bhld,bhmd->bhlm", q, k) * width ** -0.5
    mixed = torch.einsum("bhlm,bhmd->blhd", scores.softmax(-1), v).flatten(2)
    energies.append(torch.einsum("bli,ij,blj->", x, form, x).item())
    x = 0.8 * x + 0.2 * mixed
trace = torch.einsum("ii", form)
print([f"{e:.4f}" for e in energies[::8]], f"{trace.item():.4f}", tuple(mixed.shape), f"{x.sum().item():.4f}")

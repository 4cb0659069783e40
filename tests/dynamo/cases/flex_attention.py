# flex_attention, compiled and not, with a score function of its own.
import warnings

import torch
from torch.nn.attention.flex_attention import flex_attention

warnings.simplefilter("ignore")
torch.manual_seed(0)
compiled = torch.compile(flex_attention, backend="eager")


def relative(score, b, h, q, k):
    return score + (q - k)


total = torch.zeros(())
for i in range(30):
    q, k, v = (torch.randn(1, 2, 16, 8) for _ in range(3))
    total = total + flex_attention(q, k, v, score_mod=relative).sum()
    total = total + compiled(q, k, v).mean()
print(total)

# Inference under bfloat16 autocast with a part switched off inside, and the dtypes that come out.
# expect: compiled>=0.6, traces>=1
import torch
from torch import nn

torch.manual_seed(28)
encoder, head = nn.Linear(8, 8), nn.Linear(8, 2)
x = torch.randn(4, 8)
dtypes = set()
total = 0.0
with torch.no_grad():
    for step in range(50):
        with torch.autocast("cpu", dtype=torch.bfloat16, enabled=step % 5 != 4):
            hidden = torch.relu(encoder(x * (1 + step % 3)))
            with torch.autocast("cpu", enabled=False):
                scores = head(hidden.float())
            dtypes.add((str(hidden.dtype), str(scores.dtype), torch.is_autocast_enabled("cpu")))
        total += scores.softmax(-1)[:, 0].sum().item()
print(sorted(dtypes), f"{total:.2f}")

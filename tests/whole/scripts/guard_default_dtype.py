# The default dtype, an environment variable and the deterministic flag change while a loop reads them.
# expect: compiled>=0.8, traces>=1
import os

import torch

torch.manual_seed(117)
os.environ["WHOLE_SCALE"] = "0.5"
dtypes, sums = {}, []
for step in range(80):
    if step == 25:
        torch.set_default_dtype(torch.float64)
    if step == 50:
        torch.set_default_dtype(torch.float32)
    if step == 40:
        os.environ["WHOLE_SCALE"] = "2"
    if step == 65:
        torch.use_deterministic_algorithms(True)
    x = torch.linspace(0, 1, 5) * float(os.environ.get("WHOLE_SCALE", "1"))
    y = torch.exp(-x) + torch.tensor([0.1] * 5)
    dtypes[str(y.dtype)] = dtypes.get(str(y.dtype), 0) + 1
    sums.append(y.sum().item() + step * 0.01)
torch.use_deterministic_algorithms(False)
print(dtypes, [f"{s:.4f}" for s in sums[5::10]])

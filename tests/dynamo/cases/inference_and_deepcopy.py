# Compiled modules that are copied, saved, loaded, moved between modes, and patched.
import copy
import io

import torch

torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(3, 3), torch.nn.BatchNorm1d(3), torch.nn.Dropout(0.3))
compiled = torch.compile(model, backend="eager")
total = torch.zeros(())
for i in range(60):
    compiled.train(i % 4 < 2)
    total = total + compiled(torch.randn(5, 3)).sum().detach()
    if i % 20 == 10:
        clone = torch.compile(copy.deepcopy(model), backend="eager")
        file = io.BytesIO()
        torch.save(compiled.state_dict(), file)
        file.seek(0)
        compiled.load_state_dict(torch.load(file))
        total = total + clone(torch.ones(2, 3)).sum().detach()
    if i == 40:
        model[0].forward = lambda x: x * 2
print(total, model[1].running_mean, type(compiled).__name__)

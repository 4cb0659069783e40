# print and repr of tensors, modules, optimizers, devices, dtypes and sizes in the middle of a loop.
# expect: compiled>=0.4, traces>=1
import torch
from torch import nn

torch.manual_seed(69)
model = nn.Sequential(nn.Linear(2, 3), nn.Dropout(0.1), nn.BatchNorm1d(3)).eval()
x = torch.tensor([[1.0, -2.0], [0.5, 0.25]])
with torch.no_grad():
    for step in range(40):
        y = model(x) * 0.5
        x = y @ torch.ones(3, 2) * 0.3 + 0.1
        if step % 13 == 12:
            print(step, x, y.shape, y.dtype, y.device, sep="; ")
        if step == 20:
            print(model)
            print(repr(torch.optim.SGD(model.parameters(), lr=0.1)).splitlines()[1:4], torch.Size([2]), (x > 0))
torch.set_printoptions(precision=2, sci_mode=False)
print(x, torch.tensor([]), torch.tensor(3), torch.tensor([True]), torch.ones(1, dtype=torch.float64))

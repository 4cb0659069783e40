# inference_mode as a decorator and as a context; tensors made there are inference tensors.
# expect: compiled>=0.75, traces>=2
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(4, 6), nn.SiLU(), nn.LayerNorm(6), nn.Linear(6, 3)).eval()


@torch.inference_mode()
def predict(x):
    return model(x).softmax(-1)


total = 0.0
for i in range(40):
    out = predict(torch.full((2, 4), 0.1 * i))
    total += out[:, 0].sum().item()
    with torch.inference_mode():
        total += model(out.new_ones(1, 4)).sum().item()
print(f"{total:.5f}", out.is_inference(), out.requires_grad, torch.is_inference_mode_enabled())
try:
    out.requires_grad_()
except RuntimeError as error:
    print(error)

# A loop over modules dispatches on isinstance, with tuples of classes and subclasses: flops and norms for each kind.
# expect: compiled>=0.65, traces>=1
import torch
from torch import nn


class Gated(nn.Linear):
    def forward(self, x):
        return super().forward(x) * torch.sigmoid(x.mean(-1, keepdim=True))


torch.manual_seed(44)
net = nn.Sequential(nn.Conv1d(2, 4, 3, padding=1), nn.ReLU(), nn.Flatten(), Gated(20, 8), nn.LayerNorm(8), nn.Linear(8, 2))
x = torch.randn(3, 2, 5)
flops, scale = {}, 0.0
with torch.no_grad():
    for step in range(40):
        y = x + 0.01 * step
        for layer in net:
            y = layer(y)
            if isinstance(layer, (nn.Conv1d, nn.Linear)):
                kind = "gated" if isinstance(layer, Gated) else "linear" if type(layer) is nn.Linear else "conv"
                flops[kind] = flops.get(kind, 0) + layer.weight.numel() * y.shape[0]
            elif isinstance(layer, nn.ReLU) or not any(True for _ in layer.parameters()):
                flops["free"] = flops.get("free", 0) + y.numel()
            if isinstance(y, torch.Tensor) and issubclass(type(layer), nn.Module):
                scale += y.abs().mean().item()
print(flops, f"{scale:.4f}")

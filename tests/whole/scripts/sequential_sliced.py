# A Sequential that is indexed, sliced and walked: features from its first layers, scores from the rest.
import torch
from torch import nn

torch.manual_seed(8)
net = nn.Sequential(nn.Linear(6, 12), nn.ReLU(), nn.Linear(12, 12), nn.ReLU(), nn.Linear(12, 3))
body, head = net[:-1], net[-1]
kinds = {}
x = torch.randn(5, 6)
state = torch.zeros(5, 3)
with torch.inference_mode():
    for step in range(40):
        hidden = body(x + state.mean())
        state = 0.5 * state + head(hidden)
        check = x + state.mean()
        for layer in net:
            kinds[type(layer).__name__] = kinds.get(type(layer).__name__, 0) + 1
            check = layer(check)
        state = state + 0.1 * (check - state) / len(net)
print(kinds, len(body), head is net[4])
print([f"{v:.4f}" for v in state.sum(0).tolist()])

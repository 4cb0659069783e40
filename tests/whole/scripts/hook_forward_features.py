# Forward hooks that collect the activations of chosen layers, as a feature extractor does; one is removed on the way.
# expect: compiled>=0.6, traces>=1
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Conv2d(1, 3, 3, padding=1), nn.ReLU(), nn.Conv2d(3, 2, 3), nn.Flatten(), nn.Linear(32, 4)).eval()
features = {}


def keep(name):
    def hook(module, args, output):
        features[name] = (type(module).__name__, args[0].dim(), output.mean())
    return hook


handles = {name: layer.register_forward_hook(keep(name)) for name, layer in model.named_children() if name in ("1", "2", "4")}
images = torch.rand(10, 2, 1, 6, 6)
sums = {name: 0.0 for name in handles}
with torch.no_grad():
    for step in range(50):
        scores = model(images[step % 10])
        for name, (kind, dims, mean) in features.items():
            sums[name] += mean.item() * dims
        if step == 35:
            handles.pop("2").remove()
            features.clear()
print({name: f"{value:.4f}" for name, value in sums.items()})
print(sorted(features), [kind for kind, _, _ in features.values()], tuple(scores.shape))

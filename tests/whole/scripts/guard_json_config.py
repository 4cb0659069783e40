# A JSON config is read anew at times with object_hook; strings and nested numbers of it steer the model.
# expect: compiled>=0.8, traces>=1
import json

import torch
from torch import nn


class Section(dict):
    __getattr__ = dict.__getitem__


def load(text):
    return json.loads(text, object_hook=Section)


texts = ['{"model": {"act": "relu", "gain": 1}, "clip": null}', '{"model": {"act": "tanh", "gain": 0.5}, "clip": null}',
         '{"model": {"act": "tanh", "gain": 0.5}, "clip": [-0.1, 0.1]}']
torch.manual_seed(112)
layer = nn.Linear(4, 4)
x = torch.randn(3, 4)
sums = []
with torch.no_grad():
    for step in range(75):
        if step % 25 == 0:
            config = load(texts[step // 25])
        y = getattr(torch, config.model.act)(layer(x)) * config.model.gain
        if config.clip is not None:
            y = y.clamp(*config.clip)
        sums.append(y.abs().sum().item())
        x = x * 0.99
print([f"{s:.4f}" for s in sums[4::10]], json.dumps(config, sort_keys=True))

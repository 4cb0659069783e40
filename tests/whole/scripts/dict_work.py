# Dict methods in a training loop: setdefault, update, pop, items, merging with |, Counter and defaultdict.
# expect: compiled>=0.7, traces>=1
from collections import Counter, defaultdict

import torch

torch.manual_seed(40)
state = {"w": torch.zeros(3), "lr": 0.2}
meters = defaultdict(list)
kinds = Counter()
defaults = {"decay": 0.0, "clip": 1.0}
for step in range(50):
    options = defaults | ({"decay": 0.1} if step % 4 == 0 else {})
    target = torch.tensor([1.0, -1.0, 0.5]) * (1 + step % 2)
    gradient = state["w"] - target + options["decay"] * state["w"]
    gradient = gradient.clamp(-options["clip"], options.get("clip", 2.0))
    moment = state.setdefault("m", torch.zeros(3))
    state.update(m=0.5 * moment + gradient, w=state["w"] - state["lr"] * moment)
    for key, value in {"norm": gradient.norm(), "gap": (state["w"] - target).abs().max()}.items():
        meters[key].append(value.item())
    kinds["big" if meters["norm"][-1] > 1.5 else "small"] += 1
    if step == 25:
        state["lr"] = state.pop("lr") / 2
    if "temporary" not in state and step % 10 == 0:
        state["temporary"] = step
    elif step % 10 == 5:
        del state["temporary"]
print(list(state), kinds.most_common(), {key: f"{sum(values):.4f}" for key, values in meters.items()})

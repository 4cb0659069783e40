# Dicts, lists, tuples, sets, comprehensions, star-arguments and f-strings of tensors.
import torch


def combine(*tensors, weights=None, **named):
    total = sum(t * w for t, w in zip(tensors, weights or [1.0] * len(tensors)))
    for name in sorted(named):
        total = total + named[name] * len(name)
    return total, {"mean": total.mean(), "shape": tuple(total.shape)}


state = {"x": torch.ones(4), "n": 0}
history = []
for i in range(50):
    items = [state["x"] * k for k in (0.5, 0.25)]
    total, info = combine(*items, weights=[1, i % 3], extra=state["x"] * 0.01, **({"odd": items[0]} if i % 2 else {}))
    state = {**state, "x": torch.tanh(total), "n": state["n"] + len(items)}
    history = (history + [info["mean"]])[-5:]
    first, *rest = history
    label = f"{i}:{info['shape']}"
print(state["n"], label, [f"{h.item():.6f}" for h in history], len(rest), f"{first:.6f}")

# A table of lambdas and bound methods, indexed by name, with default arguments that bind loop variables.
# expect: compiled>=0.55, traces>=1
import torch

torch.manual_seed(66)
operations = {
    "scale": lambda x, by=0.9: x * by,
    "shift": lambda x, by=0.1: x + by,
    "square": lambda x: (x * x).clamp(max=2.0),
    "sorted": lambda x: x.sort(descending=True).values,
}
powers = [lambda x, k=k: x.abs() ** (1 + 0.5 * k) for k in range(3)]
plan = ["scale", "shift", "square", "sorted", "shift"]
x = torch.randn(5)
applied = {}
for step in range(60):
    name = plan[step % len(plan)]
    x = operations[name](x) if step % 7 else operations["scale"](x, by=-0.5)
    x = 0.9 * x + 0.05 * powers[step % 3](x)
    applied[name] = applied.get(name, 0) + 1
print(applied, [f"{v:.4f}" for v in x.tolist()])

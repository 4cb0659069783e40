# sorted with keys and reverse, map over several sequences, and filter choose parameters for an update.
# expect: compiled>=0.2, traces>=1
import torch

torch.manual_seed(47)
parameters = {f"p{k}": torch.randn(3) * (k + 1) for k in range(5)}
touched = []
for step in range(40):
    norms = {name: p.norm().item() for name, p in parameters.items()}
    ranked = sorted(norms, key=norms.get, reverse=True)
    large = list(filter(lambda name: norms[name] > 1.0, ranked))
    scales = map(lambda name, rank: 1.0 - 0.05 / (1 + rank), large, range(len(large)))
    for name, scale in zip(large, scales):
        parameters[name] = parameters[name] * scale
    total = sum(map(torch.sum, parameters.values()))
    touched.append(len(large))
    smallest = min(parameters, key=lambda name: norms[name])
    parameters[smallest] = parameters[smallest] + 0.01 * total.tanh()
print(touched[0], touched[-1], sum(touched), ranked, smallest)
print([f"{p.sum().item():.4f}" for p in parameters.values()])

# zip, enumerate with a start, reversed and zip(*...) walk layers forwards and backwards in a hand-written backward pass.
# expect: compiled>=0.7, traces>=1
import torch

torch.manual_seed(46)
weights = [torch.randn(4, 4) * 0.5 for _ in range(3)]
x, target = torch.randn(6, 4), torch.randn(6, 4)
losses = []
for step in range(40):
    activations = [x]
    for number, weight in enumerate(weights, start=1):
        y = activations[-1] @ weight
        activations.append(torch.tanh(y) if number < len(weights) else y)
    error = activations[-1] - target
    losses.append(error.pow(2).mean().item())
    gradients = []
    for number, (weight, before, after) in reversed(list(enumerate(zip(weights, activations, activations[1:]), 1))):
        if number < len(weights):
            error = error * (1 - after * after)
        gradients.append(before.t() @ error / len(x))
        error = error @ weight.t()
    weights = [w - 0.1 * g for w, g in zip(weights, reversed(gradients))]
pairs = [(w.norm().item(), k) for k, w in enumerate(weights)]
norms, numbers = zip(*pairs)
print([f"{v:.4f}" for v in losses[::8]], [f"{n:.4f}" for n in norms], numbers)

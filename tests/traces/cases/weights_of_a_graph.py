# An iteration that is given weights with a graph of their own, differentiates what it computes with them, and makes the next weights of both, as MAML's inner loop does: the new ones lead back to the
# weights, although the differentiation has looked at these once more, through the saved transposes.
# expect: traces>=1
import torch
import torch.nn.functional as F

torch.manual_seed(0)
x, y = torch.randn(10, 6), torch.randn(10, 3)
leaves = [(torch.randn(8, 6) * 0.4).requires_grad_(), (torch.randn(8, 8) * 0.4).requires_grad_(), (torch.randn(3, 8) * 0.4).requires_grad_()]


def predict(weights, x):
    h = torch.relu(F.linear(x, weights["a"]))
    return F.linear(torch.relu(F.linear(h, weights["b"])), weights["c"])


def inner(weights, steps):
    for _ in range(steps):
        loss = F.mse_loss(predict(weights, x), y)
        gradients = torch.autograd.grad(loss, list(weights.values()))
        weights = {name: w - 0.1 * g for (name, w), g in zip(weights.items(), gradients)}
    return weights


def run(count, steps):
    for i in range(count):
        for leaf in leaves:
            leaf.grad = None
        weights = inner(dict(zip("abc", leaves)), steps)
        F.mse_loss(predict(weights, x * 0.5), y).backward()
        yield [f"{leaf.grad.norm().item():.5f}" for leaf in leaves]
        with torch.no_grad():
            for leaf in leaves:
                leaf -= 0.01 * leaf.grad


for steps in (1, 2, 6):
    for i, norms in enumerate(run(40, steps)):
        if i % 8 == 7:
            print(steps, i, norms)

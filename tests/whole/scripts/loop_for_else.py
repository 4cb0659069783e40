# for/else and while/else: line search with backtracking, where else means that no step was accepted.
# expect: compiled>=0.85, traces>=1
import torch


def rosenbrock(p):
    return (1 - p[0]) ** 2 + 10 * (p[1] - p[0] ** 2) ** 2


p = torch.tensor([-1.0, 1.5])
accepted, exhausted = [], 0
for iteration in range(40):
    x, y = p
    gradient = torch.stack([-2 * (1 - x) - 40 * x * (y - x * x), 20 * (y - x * x)])
    value = rosenbrock(p)
    for trial in range(6):
        candidate = p - 0.5 ** (trial + 2) * gradient
        if rosenbrock(candidate) < value - 1e-4 * gradient.dot(gradient) * 0.5 ** (trial + 2):
            p = candidate
            accepted.append(trial)
            break
    else:
        exhausted += 1
        p = p - 1e-3 * gradient
    tries = 0
    while tries < 3:
        if p.abs().max() < 1.2:
            break
        tries += 1
        p = p * 0.99
    else:
        exhausted += 100
print(len(accepted), sorted(set(accepted)), exhausted, [f"{v:.4f}" for v in p.tolist()])

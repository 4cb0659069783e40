# What an iteration does before it comes to an inner loop that runs long is a trace that ends there: in a called function, under a context manager, with state
# that it has made, on batches of several sizes; loops that do not go round, and another way in.
# expect: compiled>=0.93, traces>=2
import torch

torch.manual_seed(0)
layers = [torch.randn(6, 6) / 3 for _ in range(8)]


class State:
    def __init__(self):
        self.kept = {}
        self.seen = 0

    def update(self, k, x):
        self.kept[k] = torch.cat([self.kept[k], x]) if k in self.kept else x
        self.seen += 1
        return self.kept[k][-1:]


def run(x, state):
    for k, w in enumerate(layers):
        x = torch.tanh(state.update(k, x) @ w)
    return x


def generate(x, count):
    state = State()
    with torch.no_grad():
        x = run(x, state)
        given = [x]
        while len(given) < count:
            x = torch.sin(x * 1.5 + given[-1])
            given.append(x)
    return torch.cat(given), state


for i in range(60):
    counts = i % 2 if i % 9 == 8 else 160 if i else 2000
    out, state = generate(torch.full((1 + i % 3, 6), 0.1 * (i % 4) + 0.05), counts)
    if i % 3 == 0:
        print(i, out.shape, f"{out.sum().item():.3f}", state.seen, sorted(state.kept), [f"{t.mean().item():.4f}" for t in state.kept.values()], torch.is_grad_enabled())

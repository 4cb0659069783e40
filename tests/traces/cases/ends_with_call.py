# What only the frames of a call hold is another object in the next call. Where a loop makes the call again and again nothing of it is assumed, so that the first call's traces serve all.
# expect: compiled>=0.97, recordings<=3, traces<=3
import torch


class State:
    def __init__(self, n):
        self.x = torch.full((8,), float(n))
        self.seen = []


def work(n):
    state, options, parts = State(n), {"scale": 0.5 + 0.01 * n}, [torch.ones(8) * n]
    mask = torch.ones(8)
    shift = {"by": torch.full((8,), 0.25)}
    look = lambda: (shift, parts)  # noqa: E731: so that they are cells
    for i in range(100):
        if mask is not None:
            state.x = state.x * mask
        x = state.x.sin() + shift["by"]
        state.x = x * options["scale"] - parts[0]
    return state.x


def main():
    total = torch.zeros(8)
    for call in range(12):
        total += work(call)
    print(f"{total.sum().item():.4f}")


main()

# An exit between an empty tensor's making and the first operation that writes it hands out memory that nothing has written.
# expect: traces>=1, compiled>=0.4
import torch

SPECIAL = [torch.complex64, torch.complex128]
KINDS = [torch.float32, torch.float64, torch.int64] * 20
WAYS = {
    "empty": lambda like: torch.empty((2, 3, 5)),
    "empty_like": torch.empty_like,
    "new_empty": lambda like: like.new_empty(2, 3, 5),
    "empty_strided": lambda like: torch.empty_strided((2, 3, 5), (1, 2, 6)),
}


class Bounds:
    low = 0.25


def fill(memory, dtype):
    # What `in` calls is a place to come back to, with the empty tensor in a local; then a guard that fails.
    if dtype in SPECIAL:
        return memory
    return memory.fill_(Bounds.low)


def noise(memory, dtype):
    if dtype in SPECIAL:
        return memory
    return memory.uniform_(Bounds.low, 1.0)


def into(memory, dtype):
    if dtype in SPECIAL:
        return memory
    return torch.add(torch.ones(2, 3, 5), Bounds.low, out=memory)


def part(memory, dtype):
    view = memory[1:]
    if dtype in SPECIAL:
        return memory
    memory.zero_()
    view.add_(Bounds.low)
    return memory


def run(make, write):
    kept, like = [], torch.zeros(2, 3, 5)
    Bounds.low = 0.25
    for i, dtype in enumerate(KINDS):
        if i == 15:
            Bounds.low = 0.5
        if i == 22:
            Bounds.high = 2.0
        kept.append(write(make(like), dtype))
    return kept


def rounds():  # a generator's own loop is in no trace, so that each inner one has its own
    for name, make in WAYS.items():
        for write in (fill, noise, into, part):
            torch.manual_seed(1)
            write = type(write)(write.__code__.replace(), globals())
            loop = type(run)(run.__code__.replace(), globals())
            kept = loop(make, write)
            yield name, write.__name__, [f"{t.sum().item():.4f}" for t in kept], kept[-1].stride(), len({t.data_ptr() for t in kept})


for line in rounds():
    print(*line)

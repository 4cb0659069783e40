# Each call of a class makes another object, though nothing has happened in between: instances, exceptions, dicts of C's, tuples.
# expect: compiled>=0.8
from collections import OrderedDict, defaultdict

import torch


class Empty:
    def __init__(self):
        pass


class Failure(Exception):
    pass


def make(steps):
    x, numbers, kept = torch.ones(3), [1000, 2000], []
    for i in range(steps):
        pairs = [(Empty(), Empty()), (Failure("x"), Failure("x")), (OrderedDict(), OrderedDict()), (defaultdict(list), defaultdict(list)), (tuple(numbers), tuple(numbers)), ((*numbers, 1), (*numbers, 1))]
        x = torch.tanh(x) * 0.9
        kept.append(pairs)
    same = [sum(a is b for a, b in (pairs[k] for pairs in kept)) for k in range(len(pairs))]
    alive = [len({id(each) for pairs in kept for each in pairs[k]}) for k in range(len(pairs))]
    return same, alive, x


def namespace(steps):
    x = torch.ones(3)
    for i in range(steps):
        state = OrderedDict()
        state.notes = OrderedDict()
        state.notes["version"] = 1
        state["x"] = x
        x = torch.tanh(x) * 0.9
    return list(state), list(state.notes), x.sum().item()


print(*make(100))
print(*namespace(100))

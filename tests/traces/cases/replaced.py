# Tensors that attributes and items had before: what the script has replaced dies, and what it still holds does not.
import gc
import weakref

import torch


class Cache:
    def __init__(self):
        self.keys = torch.ones(2, 3, 4)


class Slots:
    __slots__ = ("keys",)

    def __init__(self):
        self.keys = torch.ones(2, 3, 4)


torch.manual_seed(0)
x = torch.randn(2, 1, 4)
cache, slots, table, items = Cache(), Slots(), {"keys": torch.ones(2, 3, 4)}, [torch.ones(2, 3, 4), torch.ones(4)]


def longer():
    for _ in range(150):
        cache.keys = torch.cat([cache.keys, x], 1)
        seen.append(weakref.ref(cache.keys))
    return cache.keys


def attribute():
    for _ in range(150):
        cache.keys = torch.relu(cache.keys - 0.1) - cache.keys.mean()
        seen.append(weakref.ref(cache.keys))
    return cache.keys


def slot():
    for _ in range(150):
        slots.keys = slots.keys * 0.5 + x
        seen.append(weakref.ref(slots.keys))
    return slots.keys


def item_of_dict():
    for _ in range(150):
        table["keys"] = torch.tanh(table["keys"]) + 0.5 * table["keys"]
        seen.append(weakref.ref(table["keys"]))
    return table["keys"]


def item_of_list():
    for _ in range(150):
        items[0] = torch.tanh(items[0] * x) + items[1]
        seen.append(weakref.ref(items[0]))
    return items[0]


def held():
    kept = []
    for step in range(150):
        before = cache.keys
        cache.keys = before * 0.9 + 0.1
        seen.append(weakref.ref(cache.keys))
        if step % 7 == 3:
            kept.append(before)
    return sum(one.sum() for one in kept) + cache.keys.sum()


def in_place():
    for _ in range(150):
        old = cache.keys
        cache.keys = old + 1
        old.mul_(2)  # and what nobody sees is written
        seen.append(weakref.ref(cache.keys))
    return cache.keys


def run(loop):
    global seen
    seen = []
    result = loop()
    print(loop.__name__, result.shape, round(result.sum().item(), 3))
    return loop.__name__, seen


# Loops too long to be unrolled, and called from C: no trace around them knows their tensors.
rounds = list(map(run, (longer, attribute, slot, item_of_dict, item_of_list, held, in_place)))
seen = None
gc.collect()
for name, seen in rounds:  # a trace may hold a few that it knows
    print(name, sum(one() is not None for one in seen) < 30)

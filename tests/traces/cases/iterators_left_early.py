# An iterator that a loop leaves before its end is what python's is: of the same type, over the same container, which
# may change afterwards; one that has ended stays at its end.
# expect: compiled>=0.3, traces>=6
import itertools

import torch

x = torch.arange(4.0)


def pairs(items):
    return zip(items, (1, 2, 3))


def both(items):
    return itertools.chain(items, [items[0]])


def views(items):
    table = {name: item for name, item in zip("abc", items)}
    return iter(table.values())


def keyed(items):
    return iter({name: item for name, item in zip("abc", items)}.items())


def first(item):
    while isinstance(item, tuple):
        item = next(part for part in item if not isinstance(part, (int, str)))
    return item


def left(make, n):
    """Leaves each loop at another item; what is left is looked at behind a change of the list."""
    total, seen = torch.zeros(4), []
    for step in range(n):
        items = [x, x * 2, x + step]
        it = make(items)
        for item in it:
            total = total + first(item)
            if step % 9 == 8 and first(item)[1] > 1:
                break
        if step % 9 == 8:
            items.append(x - 1)
            seen.append((type(it).__name__, [first(item)[1].item() for item in it]))
    return total.tolist(), seen


def ended(make, n):
    total, seen = torch.zeros(4), []
    for step in range(n):
        items = [x, x * 2, x + step]
        it = make(items)
        while True:
            try:
                total = total + first(next(it))
            except StopIteration:
                break
        items.append(x)
        if step % 9 == 8:
            seen.append((type(it).__name__, len(list(it))))
    return total.tolist(), seen


def changed(n):
    """A dict that grows while it is iterated is an error, also where the trace is left in between."""
    total, errors = torch.zeros(4), 0
    for step in range(n):
        table = {"a": x, "b": x * 2, "c": x + step}
        try:
            for name in table:
                total = total + table[name]
                if step % 9 == 8:
                    table[f"{name}{step}"] = total
        except RuntimeError as error:
            errors += 1
            if errors < 3:
                print(error)
    return total.tolist(), errors


for make in (iter, enumerate, reversed, pairs, both, views, keyed):
    print(make.__name__, left(make, 60))
    print(make.__name__, ended(make, 60))
print(changed(60))
# A frame with builtins of its own, which have no `iter`.
exec("""
total = x
for step in range(40):
    for item in [x, x * step]:
        total = total + item
print(total.tolist())
""", {"__builtins__": {"range": range, "print": print}, "x": x})

# Two variables are two objects when the loop is recorded, and one object in a later iteration: what is known of the one ends with a store through the other.
# expect: compiled>=0.5, traces>=2
import torch


class Box:
    def __init__(self, value=0):
        self.value, self.other = value, 0


class Slots:
    __slots__ = ("value",)


def attributes(boxes, steps):
    x, total = torch.zeros(2), 0
    for i in range(steps):
        a, b = boxes[i % 7 == 6], boxes[1]
        a.value = 1
        b.value = i
        total += a.value
        x = x + 1
    return total, x.tolist()


def items(tables, steps):
    x, total = torch.zeros(2), 0
    for i in range(steps):
        a, b = tables[i % 7 == 6], tables[1]
        a["value"] = 1
        b["value"] = i
        total += a["value"]
        x = x + 1
    return total, x.tolist()


def entries(lists, steps):
    x, total = torch.zeros(2), 0
    for i in range(steps):
        a, b = lists[i % 7 == 6], lists[1]
        a[0] = 1
        b[0] = i
        total += a[0]
        b.append(i)
        total += len(a)
        a.pop()
        x = x + 1
    return total, x.tolist()


CONSTANT = Box(True)
TABLE = {"value": True, "other": 2}


def a_constant(boxes, steps):
    x, seen = torch.zeros(2), []
    for i in range(steps):
        before = CONSTANT.value, CONSTANT.other
        boxes[i % len(boxes)].value = i % 3 == 0
        seen.append((before, CONSTANT.value, CONSTANT.other))
        boxes[i % len(boxes)].value = True
        x = x + 1
    return seen, x.tolist()


def a_constant_table(tables, steps):
    x, seen = torch.zeros(2), []
    for i in range(steps):
        before = TABLE["value"], len(TABLE)
        table = tables[i % len(tables)]
        table["value"] = i
        seen.append((before, TABLE["value"], sorted(TABLE)))
        table.update(value=True)
        seen.append(TABLE["value"])
        x = x + 1
    return seen, x.tolist()


def slots(boxes, steps):
    x, total = torch.zeros(2), 0
    for i in range(steps):
        a, b = boxes[i % 7 == 6], boxes[1]
        a.value = 1
        b.value = i
        total += a.value
        x = x + 1
    return total, x.tolist()


print(attributes([Box(), Box()], 60))
print(items([{"value": 0}, {"value": 0}], 60))
print(entries([[0], [0]], 60))
print(a_constant([Box() for _ in range(6)] + [CONSTANT], 60))
print(a_constant_table([{} for _ in range(6)] + [TABLE], 60))
print(slots([Slots(), Slots()], 60))

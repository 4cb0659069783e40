"""array.array of every kind: items read and written in loops, out of range, of the wrong type, while the array changes, and exported."""
from array import array

KINDS = "bBhHiIlLqQfd"


def total(items, count):
    s = 0
    for i in range(count):
        s += items[i] * 2 - items[-1 - i]
    return s


def fill(items, count, value):
    for i in range(count):
        items[i] = value
        items[-1] = items[i]
    return items


def swap(items, count):
    for i in range(count // 2):
        items[i], items[count - 1 - i] = items[count - 1 - i], items[i]
    return items


def attempt(function, *arguments):
    try:
        return function(*arguments)
    except Exception as error:
        return type(error).__name__, str(error)


for kind in KINDS:
    items = array(kind, [3, 1, 4, 1, 5, 9, 2, 6] * 8)
    for _ in range(4):
        print(kind, attempt(total, items, 64), attempt(total, items, 65))
    print(swap(items, 64)[:9], attempt(fill, items, 64, 7)[:3], attempt(fill, items, 64, 1.5)[:3], attempt(fill, items, 65, 2))
    for value in (300, -1, -129, 1 << 31, 1 << 40, 1 << 64, -(1 << 63), True, None, "a", 2.0, float("nan"), 1e300):
        print(kind, value, attempt(fill, items, 4, value)[:2])
extremes = array("q", [-(1 << 63), (1 << 63) - 1, 0, -1] * 10), array("Q", [(1 << 64) - 1, 1 << 63, 0, 1] * 10), array("I", [(1 << 32) - 1, 0] * 20)
for items in extremes:
    print([attempt(total, items, 40) for _ in range(3)])
letters = array("u", "abcdefgh" * 8)


def join(items, count):
    return "".join(items[i] for i in range(count)) + items[0] + items[-1]


print(join(letters, 64)[:10], attempt(fill, letters, 8, "z")[:9], attempt(fill, letters, 8, "zz")[:2], attempt(fill, letters, 3, 1))


class Shrinks:
    """Its number takes the array's items away."""
    def __init__(self, items): self.items = items
    def __float__(self): del self.items[4:]; return 2.5
    def __index__(self): del self.items[4:]; return 3


for kind in "dl":
    for at in range(30):
        items = array(kind, range(32))
        def store(items, value, count):
            for i in range(count):
                items[i] = value if i == at else i
        print(kind, at, attempt(store, items, Shrinks(items), at + 1), len(items)) if at < 4 else None


class Own(array):
    def __getitem__(self, i): return "own", i
    def __setitem__(self, i, value): print("set", i, value)


def mixed(all_items):
    found = []
    for items in all_items:
        found.append(items[1])
        items[1] = 8
    return found


for _ in range(12):
    results = mixed([array("d", [1, 2]), array("i", [1, 2]), [1, 2], Own("d", [1, 2]), {1: 2}, bytearray(b"ab"), array("f", [1, 2])])
print(results)
exported = array("d", [1.0] * 40)
with memoryview(exported) as view:
    print(total(exported, 40), fill(exported, 40, 2.5)[3], view[3])
    print(attempt(exported.append, 1.0))

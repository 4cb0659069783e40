"""Loops over iterators of C types: what their next() raises, changes and switches on while numbers are unboxed."""
import itertools
import sys


def dot(left, right):
    total = 0.0
    for a, b in zip(left, right):
        total += a * b
    return total


def tally(iterator, limit=1 << 40):
    total, seen = 0, 0
    for item in iterator:
        total += item * 2
        seen += 1
        if total > limit:
            break
    return total, seen


def outer(rows):
    total = 1.5
    for i, row in enumerate(rows):
        for key, value in row.items():
            if value > 3:
                total += value * i
        total -= 0.25
    return total


def told(function, *arguments):
    try:
        return function(*arguments)
    except Exception as error:
        at, lines = error.__traceback__, []
        while at is not None:
            lines.append((at.tb_frame.f_code.co_name, at.tb_lineno - at.tb_frame.f_code.co_firstlineno))
            at = at.tb_next
        return type(error).__name__, str(error), error.__context__, lines


numbers = list(range(40))
floats = [n / 4 for n in numbers]
for _ in range(30):
    dot(floats, floats), tally(iter(range(20, 60))), tally(reversed(numbers)), outer([{n: n for n in numbers}] * 3)
print(dot(floats, floats), dot(floats, floats[:7]), dot([], floats), tally(itertools.count(), 500), tally(itertools.chain(numbers, numbers)))
print(outer([{n: n for n in numbers}] * 3), outer([{}]), outer([]), tally({1: 2, 3: 4}), tally({5, 6}), tally(itertools.accumulate(numbers)))

# Other types than those seen so far, and in the middle.
print(told(dot, floats, numbers), told(dot, numbers, numbers), told(dot, floats, ["a"]), told(tally, "abc"), told(tally, [1.5, 2, True]))
print(told(tally, itertools.chain(numbers, ["x"])), told(tally, map(float, numbers)), told(tally, (n for n in numbers)))


# What raises, and what comes after that.
def fails(n):
    if n == 25:
        raise KeyError(n)
    return n


def stops(n):
    if n % 10 == 7:
        raise StopIteration
    return n


again = map(stops, itertools.count(1))
for _ in range(30):
    tally(map(abs, numbers))
print(told(tally, map(fails, numbers)), [tally(again) for _ in range(4)])
for _ in range(3):
    table = {n: n for n in range(10)}

    def grows(n):
        if n == 4:
            table[n + 100] = n
        return n

    print(told(tally, map(grows, table)), told(tally, map(grows, iter(table))))


# What it runs looks at the frame, changes it, and switches tools on.
def looks(n):
    frame = sys._getframe(1)
    if n in (3, 30):
        shown.append((frame.f_lineno - frame.f_code.co_firstlineno, sorted(frame.f_locals.items(), key=lambda item: item[0])))
    if sys.version_info >= (3, 13) and n == 31:
        frame.f_locals["total"] = 0.5
    return n


def watched(limit):
    total, seen = 0, ()
    for item in map(looks, range(limit)):
        total += item
        if total < 0:
            seen = item
    return total


shown = []
for _ in range(40):
    result = watched(35)
print(result, [(line, [(name, value) for name, value in items if isinstance(value, (int, float))]) for line, items in shown[-4:]], len(shown))

events = []


def tool(frame, event, argument):
    if frame.f_code.co_name in ("traced", "switches"):
        events.append((frame.f_code.co_name, event, frame.f_lineno - frame.f_code.co_firstlineno))
    return tool


def switches(n):
    if n == 5 and on:
        sys.settrace(tool)
        sys._getframe(1).f_trace = tool
    if n == 7 and on:
        sys.settrace(None)
    return n


def traced(limit):
    total = 0
    for item in map(switches, range(limit)):
        total += item
        total *= 1
    return total


on = False
for _ in range(40):
    traced(9)
on = True
for _ in range(3):
    print(traced(9), events)
    events.clear()

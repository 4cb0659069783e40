# Memory belongs to the line that asked for it.
import tracemalloc


def loop(items):
    for i in range(1000, 1020):
        items.append(i)
    for i in \
            range(2000, 2020):
        items.append(
            i)


def arithmetic(items, x, y, a, b):
    for i in range(20):
        items.append((
            x / y,
            x
            + y,
            a
            + b,
            a
            * 3))


def slices(items, many):
    for i in range(20):
        items.append(
            many[
                1:
                9
            ])


def built(items, x):
    for i in range(20):
        items.append(
            [
                x,
                i
            ])
        items.append({
            x: i})
        items.append(
            f"{x}"
            f"{i}")


def run():
    items = []
    loop(items)
    arithmetic(items, 1.5, 2.5, 1000, 2000)
    slices(items, list(range(10)))
    built(items, 5)
    return items


tracemalloc.start()
run(), tracemalloc.take_snapshot()  # a code object's first call needs memory of its own
tracemalloc.stop()
tracemalloc.start()
kept = run()
for statistic in sorted(tracemalloc.take_snapshot().statistics("lineno"), key=lambda found: found.traceback[0].lineno):
    place = statistic.traceback[0]
    if place.filename == __file__:
        print(place.lineno, statistic.count)
tracemalloc.stop()

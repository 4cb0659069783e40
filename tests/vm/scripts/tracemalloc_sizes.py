"""Memory that tracemalloc shows for objects that the evaluator makes itself: as many bytes as CPython's own take."""
import collections
import gc
import tracemalloc


def ints():
    return [i for i in range(1000, 1400)], {i: -i for i in range(300, 700)}, [i * 3 for i in range(1000, 1400)], [i + 5 for i in range(1000, 1400)]


def floats():
    return [x * 0.5 for x in range(1, 400)], [float(x) + 1 for x in range(400)]


def containers():
    return [(i, i) for i in range(400)], [[i] for i in range(400)], [{i: i} for i in range(400)], [{i} for i in range(400)]


def slices():
    text, items = "abcdef" * 10, list(range(60))
    return [text[i:i + 20] for i in range(30)], [items[i:i + 20] for i in range(30)], [text + str(i) for i in range(30)]


class Plain:
    def __init__(self, value):
        self.value, self.other = value, None


def instances():
    return [Plain(i) for i in range(400)], [lambda: i for i in range(400)], [Plain(0).__init__ for _ in range(400)]


def sizes(function):
    """The sizes that hundreds of the result's blocks have; results that are kept emptied the free lists before."""
    kept = [function() for _ in range(4)]
    tracemalloc.start()
    kept.append(function())
    shown = tracemalloc.take_snapshot().filter_traces([tracemalloc.Filter(True, __file__)])
    tracemalloc.stop()
    counted = collections.Counter((trace.traceback[0].lineno, trace.size) for trace in shown.traces)
    return sorted(key for key, count in counted.items() if count > 200)


gc.disable()
for function in (ints, floats, containers, slices, instances):
    print(function.__name__, sizes(function))
tracemalloc.start(5)
made = instances()
for value in (made[0][0], made[0][0].__dict__, made[1][1], made[2][2]):
    print([frame.lineno for frame in tracemalloc.get_object_traceback(value) or ()])

# What is raised or looked at in the middle of a fused form belongs to the instruction that does it, not to the first one.
import sys

try:
    import _testcapi
except ImportError:
    _testcapi = None


class Watcher:
    def __del__(self):
        print(sys._getframe(1).f_lineno - sys._getframe(1).f_code.co_firstlineno)


def store(items, replacement):
    items[
        0
        :
        1
    ] = replacement


def loop():
    x = Watcher()
    for \
        x \
            in range(
                2):
        pass


for repetition in range(6):
    store([Watcher()], [])
    store([Watcher(), 1], (1, 2))
    loop()


def add(a, b):
    return (
        a
        +
        b
    )


def take(items, start, stop):
    return items[
        start
        :
        stop
    ]


def put(items, replacement):
    items[
        1
        :
        1
    ] = replacement


def place_without_memory(function, *arguments):
    _testcapi.set_nomemory(0, 1)
    try:
        function(*arguments)
    except MemoryError as error:
        _testcapi.remove_mem_hooks()
        return error.__traceback__.tb_next.tb_lineno - function.__code__.co_firstlineno
    _testcapi.remove_mem_hooks()
    return None


for repetition in range(40) if _testcapi else ():
    numbers, many = list(range(300, 350)), [None] * 1000
    add(1000, 1000), take(numbers, 0, 20), put(numbers, many[:20])
    for function, arguments in ((add, (1000, 1000)), (take, (numbers, 0, 30)), (put, (numbers, many))):
        print(function.__name__, place_without_memory(function, *arguments))

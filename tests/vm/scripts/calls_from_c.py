"""Python functions called from C: often enough that C enters the evaluator by itself, with all kinds of parameters, errors and changes."""
import functools
import sys
import weakref


def plain(a):
    return a + 1


def defaults(a, b=10, *, c=100):
    return a + b + c


def collects(*args, **kwargs):
    return len(args), sorted(kwargs)


def generates(n):
    for i in range(n):
        yield i * i


async def coroutine(n):
    return n


def closure(k):
    def inner(a):
        nonlocal k
        k += a
        return k
    return inner


class Key:
    def __init__(self, value, *rest, flag=False):
        self.value = value

    def __hash__(self):
        return hash(self.value)

    def __eq__(self, other):
        return self.value == other.value

    def __lt__(self, other):
        return self.value < other.value

    def __repr__(self):
        return f"Key({self.value})"


def lines(function, *arguments, **keywords):
    try:
        return function(*arguments, **keywords)
    except Exception as error:
        return type(error).__name__, str(error), error.__traceback__.tb_next is None


for _ in range(2):
    print(list(map(plain, range(5))), list(map(defaults, range(5))), list(map(defaults, range(5), range(5))))
print([list(g) for g in map(generates, range(4))])
for pending in map(coroutine, range(3)):
    try:
        pending.send(None)
    except StopIteration as stop:
        print(stop.value)
print(list(map(closure(3), range(6))))
print(list(map(collects, range(3), "abc")))
print([functools.partial(function, b=3)(1) for function in (defaults, defaults, defaults)])
print([functools.partial(collects, 1, x=2)(y=i) for i in range(3)])

# Arguments that do not fit, from C that has called the function before.
for function in plain, defaults, closure(1), Key.__hash__:
    for _ in range(3):
        print(lines(functools.partial(function)), lines(functools.partial(function, 1, 2, 3)), lines(functools.partial(function, 1, zz=3)))

# Slots of types.
print(sorted(Key(i * 7 % 5) for i in range(5)), len({Key(i % 3) for i in range(20)}), max(map(Key, range(9))))
table = {Key(i): i for i in range(10)}
print([table[Key(i)] for i in range(10)], Key(11) in table)
print(list(map(Key, range(2), range(2))), [functools.partial(Key, flag=True)(i) for i in range(3)])

# The function changes between calls.
def changes(a):
    return "one", a


def other(a, b=2, *c):
    return "other", a, b, c


results = []
for i in range(8):
    results.append(lines(lambda: list(map(changes, [i]))))
    if i == 3:
        changes.__code__ = other.__code__
    if i == 5:
        changes.__defaults__ = (7,)
print(results)


# What the caller sees of the frame, and what keeps it.
def looks(depth):
    frame = sys._getframe()
    return frame.f_code.co_name, frame.f_back.f_code.co_name, frame.f_lineno - frame.f_code.co_firstlineno


def keeps(a):
    local = a
    return sys._getframe()


print(list(map(looks, range(3))), [frame.f_locals for frame in map(keeps, range(3))])


class Dies:
    def __del__(self):
        deaths.append(sys._getframe(1).f_code.co_name)


deaths = []


def drops(a):
    made = Dies()
    del a


list(map(drops, range(3)))
print(deaths)
reference = [weakref.ref(made) for made in map(closure, range(3))]
print([r() for r in reference])


# Recursion through C, to its end.
def down(n):
    return n and max(map(down, [n - 1])) + 1


print(down(50))
sys.setrecursionlimit(150)
try:
    down(10 ** 6)
except RecursionError as error:
    print(type(error).__name__)
sys.setrecursionlimit(1000)


# Exceptions, in both directions.
def fails(a):
    if a == 2:
        raise KeyError(a)
    return a


for _ in range(3):
    try:
        list(map(fails, range(5)))
    except KeyError as error:
        at = error.__traceback__
        print(error, at.tb_frame.f_code.co_name, at.tb_next.tb_frame.f_code.co_name, at.tb_next.tb_lineno - fails.__code__.co_firstlineno)

# Tools that are switched on see the same calls as ever.
if sys.version_info >= (3, 12):
    events = sys.monitoring.events
    told = []
    sys.monitoring.use_tool_id(3, "calls")
    for name in "CALL", "C_RETURN", "C_RAISE", "PY_START", "PY_RETURN":
        sys.monitoring.register_callback(3, getattr(events, name), lambda *rest, name=name: told.append((name, getattr(rest[2], "__name__", None) if name[0] == "C" else None)))

    def calls():
        plain(1)
        defaults(2)
        list(map(plain, range(2)))

    for _ in range(2):
        list(map(plain, range(3)))
        list(map(defaults, range(3)))
        sys.monitoring.set_events(3, events.CALL | events.C_RETURN | events.C_RAISE | events.PY_START | events.PY_RETURN)
        calls()
        sys.monitoring.set_events(3, 0)
    sys.monitoring.free_tool_id(3)
    print(told)

seen = []


def tool(frame, event, argument):
    if frame.f_code is plain.__code__ or frame.f_code is looks.__code__:
        seen.append((event, frame.f_code.co_name))
    return tool


for _ in range(3):
    list(map(plain, range(2)))
    sys.settrace(tool)
    list(map(plain, range(2)))
    plain(1)
    sys.settrace(None)
    sys.setprofile(tool)
    looks(1)
    list(map(plain, range(1)))
    sys.setprofile(None)
print(seen)

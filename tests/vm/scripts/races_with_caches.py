# What an instruction remembers is changed by another thread while it runs: nothing crashes, and each reader sees an old or a new value.
# (CPython's test_opcache does the same, but first asks for CPython's own specialised instructions.)
import sys
import threading
import types

ITEMS, ROUNDS = 300, 3
sys.setswitchinterval(1e-6)


def plain(**space):
    return lambda: [type("C", (), dict(space))() for _ in range(ITEMS)]


def ignoring(*errors):
    def wrap(function):
        def each(items):
            for item in items:
                try:
                    function(item)
                except errors:
                    pass
        return each
    return wrap


def set_type(name, make):
    def change(item):
        try: delattr(type(item), name)
        except AttributeError: pass
        setattr(type(item), name, make())
    return change


def toggle_dict(item):
    item.__dict__ = {"a": 1, "b": 2} if len(item.__dict__) else {}
    item.a = 3


def toggle_list(item): item.clear(); item.append(1)
def toggle_module(item): item.__dict__.pop("a", None); item.a = 5
def set_code(item): item.__code__ = item.__code__.replace()
def numbers(): return [[1, 2] for _ in range(ITEMS)]
def modules():
    made = [types.ModuleType("m") for _ in range(ITEMS)]
    for module in made: module.a = 1
    return made
def functions():
    space = {}
    exec("def make():\n  def f(a=1): return x\n  return f\nx = 1", space)
    return [space["make"]() for _ in range(ITEMS)]


def get_item(o): o[None]
def get_first(o): o[0]
def put_first(o): o[0] = 7
def call(o): o()
def get(o): o.a
def put(o): o.a = 1
def drop(o): del o.a
def method(o): o.m()
def make(o): type(o)()
def walk(o):
    for _ in o: pass
def two(o): a, b = o
def hidden(o): o.__class__
def set_global(o): o.__globals__["x"] = None; o.__globals__.pop("x", None)
def truth(o): bool(o) and not o
def add(o): o + o
def less(o): o < o


class Managed:
    def __init__(self): self.a = 1


CASES = [
    ("getitem", plain(__getitem__=lambda s, i: None), get_item, set_type("__getitem__", lambda: lambda s, i: None)),
    ("list item", numbers, get_first, toggle_list),
    ("store to list", numbers, put_first, toggle_list),
    ("unpack", numbers, two, toggle_list),
    ("iterate", numbers, walk, toggle_list),
    ("class attribute", plain(a=1), get, set_type("a", lambda: 2)),
    ("method", plain(m=lambda s: None), method, set_type("m", lambda: lambda s: None)),
    ("property", plain(a=property(lambda s: 1)), get, set_type("a", lambda: property(lambda s: None))),
    ("getattribute", plain(__getattribute__=lambda s, n: None), get, set_type("__getattribute__", lambda: lambda s, n: None)),
    ("getattr", plain(__getattr__=lambda s, n: None), get, set_type("__getattr__", lambda: lambda s, n: 1)),
    ("init", plain(__init__=lambda s: None), make, set_type("__init__", lambda: lambda s: None)),
    ("instance attribute", lambda: [Managed() for _ in range(ITEMS)], get, toggle_dict),
    ("store to instance", lambda: [Managed() for _ in range(ITEMS)], put, toggle_dict),
    ("delete from instance", lambda: [Managed() for _ in range(ITEMS)], drop, toggle_dict),
    ("slot", plain(__slots__=("a",)), put, drop),
    ("module", modules, get, toggle_module),
    ("code", functions, call, set_code),
    ("global", functions, call, set_global),
    ("truth", plain(__bool__=lambda s: True), truth, set_type("__bool__", lambda: lambda s: False)),
    ("add", plain(__add__=lambda s, o: 1), add, set_type("__add__", lambda: lambda s, o: 2)),
    ("less", plain(__lt__=lambda s, o: 1), less, set_type("__lt__", lambda: lambda s, o: 2)),
    ("class", plain(), hidden, lambda o: setattr(o, "__class__", type("D", (), {}))),
]
ERRORS = AttributeError, TypeError, NameError, ValueError, IndexError, NotImplementedError
for name, items, read, write in CASES:
    read, write = ignoring(*ERRORS)(read), ignoring(*ERRORS)(write)
    for _ in range(ROUNDS):
        made = items()
        read(made)
        read(made)
        writers = [threading.Thread(target=write, args=[made]) for _ in range(2)]
        for writer in writers: writer.start()
        read(made)
        for writer in writers: writer.join()
    print(name, "done")

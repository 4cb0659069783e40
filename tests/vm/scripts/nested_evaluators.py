"""Python entered from C at many places, with exceptions and generators passing through."""
import functools, operator, re, json, ctypes, itertools
def fail(*a): raise KeyError("from callback")
class Cmp:
    def __init__(self, v): self.v = v
    def __lt__(self, o):
        if self.v == 3: raise ValueError("lt")
        return self.v < o.v
    def __hash__(self): return 1
    def __eq__(self, o): return self.v == o.v
    def __index__(self): return self.v
    def __repr__(self): return "C%d" % self.v
    def __iter__(self): yield self.v; raise OSError("iter")
for what in (lambda: sorted([Cmp(2), Cmp(1)]), lambda: sorted([Cmp(2), Cmp(3)]), lambda: max(map(fail, [1])), lambda: list(Cmp(1)), lambda: re.sub("a", fail, "a"), lambda: functools.reduce(fail, [1, 2]), lambda: {Cmp(1), Cmp(1), Cmp(2)}, lambda: [1, 2, 3][Cmp(1)], lambda: range(Cmp(3)), lambda: "%s" % Cmp(1), lambda: [*Cmp(1)], lambda: tuple(Cmp(2)), lambda: dict([Cmp(1)]), lambda: any(x.v > 1 for x in (Cmp(1), Cmp(2))), lambda: sum(fail() for _ in "a"), lambda: json.dumps(object()), lambda: functools.cmp_to_key(lambda a, b: b - a)(1) < functools.cmp_to_key(lambda a, b: b - a)(2), lambda: list(itertools.starmap(fail, [(1,)])), lambda: int(Cmp(1)), lambda: min([3, 1], key=lambda v: -v)):
    for i in range(3):
        try: r = what()
        except Exception as e: r = type(e).__name__, str(e)[:50]
    print(r)
cb = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_int)(lambda v: v * 2); print(cb(21))
def gen():
    try: yield from map(lambda v: 1 // v, [1, 0])
    except ZeroDivisionError: yield "caught in gen"
print(list(gen()))
def through():
    return list(map(lambda g: next(g), [iter([1]), gen()]))
print(through())

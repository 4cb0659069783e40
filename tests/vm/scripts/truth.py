"""Truth tests of everything, in all forms of jumps."""
class B:
    def __init__(self, v): self.v = v
    def __bool__(self): return self.v
class L:
    def __init__(self, v): self.v = v
    def __len__(self): return self.v
class N: pass
class Idx:
    def __index__(self): return 3
class X:
    def __bool__(self): return 1
values = [True, False, None, 0, 1, -1, 0.0, 0.1, "", "a", [], [0], (), (0,), {}, {1: 1}, set(), {1}, b"", b"a", B(True), B(False), L(0), L(2), N(), range(0), range(1), 0j, 2**70, L(Idx()), Ellipsis]
def t(v):
    r = []
    if v: r.append(1)
    if not v: r.append(2)
    r.append(v and 3)
    r.append(v or 4)
    r.append(not v)
    n = 0
    while v and n < 2: n += 1
    r.append(n)
    r.append(5 if v else 6)
    r.append([x for x in (1,) if v])
    return [x if isinstance(x, (int, list)) else type(x).__name__ for x in r]
for rep in range(3):
    for v in values: 
        o = t(v)
        if rep == 2: print(type(v).__name__, o)
for bad in (X(), L(-1), L("a"), L(2**100)):
    for f in (lambda: 1 if bad else 2, lambda: not bad, lambda: bad and 1, lambda: bool(bad)):
        try: print(f())
        except Exception as e: print(type(e).__name__, e)
def none(v):
    r = ""
    if v is None: r += "a"
    if v is not None: r += "b"
    while v is None: r += "c"; v = 1
    while v is not None: r += "d"; v = None
    return r
print(none(None), none(1), none([]))
assert True, "never"
try: assert not True, "message"
except AssertionError as e: print(e)

"""match: every pattern kind."""
import dataclasses
@dataclasses.dataclass
class Point: x: int; y: int
class Pos:
    __match_args__ = ("a", "b")
    def __init__(self, a, b): self.a, self.b = a, b
class BadArgs: __match_args__ = "ab"
class BadArgs2: __match_args__ = (1,)
def m(v):
    match v:
        case 0 | 1: return "small"
        case int(n) if n > 100: return f"big {n}"
        case int() | float() as n: return f"number {n}"
        case "a" | "b": return "ab"
        case str(s): return f"str {s}"
        case []: return "empty"
        case [x]: return f"one {x}"
        case [x, y, *rest] if rest: return f"many {x} {y} {rest}"
        case (x, y): return f"pair {x} {y}"
        case {"k": k, **rest}: return f"k {k} {rest}"
        case {}: return "mapping"
        case Point(x=0, y=y): return f"on axis {y}"
        case Point(x, y): return f"point {x} {y}"
        case Pos(1, b): return f"pos {b}"
        case Pos(a=a): return f"pos a {a}"
        case None: return "none"
        case True: return "true"
        case _: return "other"
vals = [0, 1, 5, 1000, 2.5, "a", "zz", [], [1], [1, 2], (1, 2), (1, 2, 3), range(2), b"ab", {"k": 1, "z": 2}, {"q": 1}, {}, Point(0, 5), Point(3, 4), Pos(1, 2), Pos(3, 4), None, True, object, {1, 2}]
for i in range(3): out = [m(v) for v in vals]
print(out)
for v, src in [(Point(1, 2), "Point(1, 2, 3)"), (BadArgs(), "BadArgs(1)"), (BadArgs2(), "BadArgs2(1)"), (1, "len(x)"), (Pos(1, 2), "Pos(1, a=2)"), (5, "int(a, b)")]:
    ns = dict(globals(), v=v)
    try: exec(f"match v:\n  case {src}: pass\n  case _: print('no')", ns)
    except TypeError as e: print(src, e)
def dup(k1, k2):
    class K: a = k1; b = k2
    match {"x": 1}:
        case {K.a: 1, K.b: 2}: return 1
    return 0
try: print(dup("x", "x"))
except ValueError as e: print(e)
def keys(d):
    match d:
        case {"a": 1, "b": [x, {"c": y}]}: return x, y
        case {"a": _}: return "has a"
    return None
print(keys({"a": 1, "b": [2, {"c": 3}]}), keys({"a": 5}), keys({"z": 1}))

"""Comparisons, chained and fused with jumps, over types."""
def c(a, b):
    r = []
    if a < b: r.append("<")
    if a <= b: r.append("<=")
    if a == b: r.append("==")
    if a != b: r.append("!=")
    if a > b: r.append(">")
    if a >= b: r.append(">=")
    if not a == b: r.append("not==")
    while a < b:
        r.append("w"); break
    return "".join(r), a < b, a == b
for a, b in [(1, 2), (2, 1), (1, 1), (1.0, 2.0), (float("nan"), 1.0), ("a", "b"), ("a", "a"), (2**70, 1), (1, 1.0), ((1, 2), (1, 3))] * 3:
    print(c(a, b))
try: c(1, "a")
except TypeError as e: print(e)
def chain(x): return 1 < x < 5 <= x + 4 == 8
print([chain(i) for i in range(7)])
class T:
    def __eq__(self, o): return "truthy"
    def __lt__(self, o): return []
    def __bool__(self): raise RuntimeError("bool")
print(T() == 1, T() < 1)
if T() == 1: print("ok")
if not (T() < 1): print("ok2")
try:
    if T(): pass
except RuntimeError as e: print(e)
class R:
    def __eq__(self, o): raise KeyError("eq")
for i in range(4):
    try:
        if R() == 1: pass
    except KeyError as e: print(e)
print(None is None, None is not None, [] is [], 1 in (1, 2), 3 not in [1], "a" in "abc", 2 in {1: 2}, "k" in {"k": 1})

"""Building containers; comprehensions; unhashable members; order of evaluation."""
log = []
def v(x): log.append(x); return x
print({v(1): v(2), v(3): v(4)}, [v(5), v(6)], (v(7), v(8)), {v(9), v(10)}, v(11)if v(1) else v(12)); print(log)
for src in ("{[]: 1}", "{[]}", "{1: [], (): {}}", "{**{1: 2}, 1: 3}", "{'a': 1, 'b': 2, 'c': 3, 'd': 4, 'e': 5, 'f': 6}"):
    try: print(eval(src))
    except TypeError as e: print(e)
print([i * j for i in range(4) if i % 2 for j in range(3) if j != i], {i: i * i for i in range(4)}, {i % 3 for i in range(9)}, list(i for i in range(3)))
def nested(n): return [[(i, j) for j in range(i)] for i in range(n)]
print(nested(4))
class K:
    def __init__(s, v): s.v = v
    def __hash__(s): log.append("hash"); return s.v
    def __eq__(s, o): log.append("eq"); return s.v == o.v
log.clear()
d = {K(1): "a", K(1): "b", K(2): "c"}; print(len(d), d[K(1)], log)
print(K(1) in {K(1)}, K(3) in d)
s = slice(1, 2); print(s, slice(None), [1, 2, 3][s])
l = []; l.append(l); print(l)
def app(n):
    l = []
    for i in range(n): l.append(i)
    return l
print(app(10))
class L2(list):
    def append(self, x): super().append(x * 2)
def app2(l):
    for i in range(5): l.append(i)
    return l
print(app2([]), app2(L2()), app2([]))
x = [1, 2]; y = x; x += [3]; print(y); t = (1,); u = t; t += (2,); print(u)
class Same(str):
    def __eq__(self, other): return True
    __hash__ = str.__hash__
class Loud:
    def __eq__(self, other): raise ValueError("compared")
def among(items):
    found = []
    for needle in ("abc", "a" + "bc"[:2], "é", "𝄞", "", 5, -3, 10**6, 2**70, True, 1.0, 0, None, Same("q"), b"abc"):
        try: found.append((needle in items, needle not in items))
        except ValueError as error: found.append(str(error))
    return found
for _ in range(8): results = [among(items) for items in (
    (), ("abc", 5, None), ["é", "𝄞", -3, 1.5, 2**70], [10**6, "x", True], (1,), [1.0, "abc"], ("zz", Same("other")), [0, Loud()], [(), "abc"], (None, 2.5, ""))]
for row in results: print(row)

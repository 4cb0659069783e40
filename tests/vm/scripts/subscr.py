"""Subscripts: lists, tuples, dicts, slices, user containers, errors."""
class G:
    def __getitem__(self, k): return ("get", k)
    def __setitem__(self, k, v): print("set", k, v)
    def __delitem__(self, k): print("del", k)
    def __contains__(self, k): return k == 1
    def __len__(self): return 2
class H(dict):
    def __missing__(self, k): return "missing %s" % k
class CG:
    def __class_getitem__(cls, k): return (cls.__name__, k)
def get(o, k): return o[k]
def put(o, k, v): o[k] = v
l = [1, 2, 3]; t = (4, 5, 6); d = {"a": 1, 2: "b", (1, 2): "t"}
cases = [(l, 0), (l, -1), (l, 2), (l, 3), (l, -4), (t, 1), (t, -3), (t, 9), (d, "a"), (d, 2), (d, (1, 2)), (d, "zz"), (d, []), (G(), 5), (H(), "q"), (CG, int), (list, int), ("abc", 1), (l, slice(0, 2)), (l, True), (l, "x"), (5, 1), (l, 2**80)]
for r in range(4):
    for o, k in cases:
        try: v = get(o, k)
        except Exception as e: v = (type(e).__name__, str(e))
        if r in (0, 3): print(v)
for o, k, v in [(l, 0, "x"), (l, -1, "y"), (l, 7, "z"), (d, "n", 1), (d, [], 1), (t, 0, 1), (G(), 1, 2), (l, slice(0, 1), [9, 9])] * 2:
    try: put(o, k, v)
    except Exception as e: print(type(e).__name__, e)
print(l, d)
del l[0]; del d["a"]; del G()[3]
try: del t[0]
except TypeError as e: print(e)
print(l, l[1:], l[::-1], l[:-1], "abcdef"[1:4:2], 1 in G(), 2 in G(), 1 not in G(), len(G()))
class BadIn:
    def __contains__(self, k): raise ValueError("contains")
class IterIn:
    def __iter__(self): return iter((1, 2))
for c in (BadIn(), IterIn(), 5):
    for i in range(3):
        try: print(2 in c, 5 not in c)
        except Exception as e: print(type(e).__name__, e)

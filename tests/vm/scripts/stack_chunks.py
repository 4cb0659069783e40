"""Recursion and loops across the ends of the data stack's chunks."""
def big(n, *args, **kw):
    a = b = c = d = e = f = g = h = n
    if n == 0: return sum(args) + len(kw)
    return big(n - 1, *args, n, **kw)
print(big(100), big(90, x=1))
def many(n):
    v0 = v1 = v2 = v3 = v4 = v5 = v6 = v7 = v8 = v9 = n
    w = [v0, v1, v2, v3, v4, v5, v6, v7, v8, v9]
    return 0 if n == 0 else len(w) + many(n - 1)
for i in range(40): r = many(i * 20)
print(r)
def at_depth(n, f): return f() if n == 0 else at_depth(n - 1, f)
def leaf(a, b=2, *c, **d): return a + b
def loop():
    t = 0
    for i in range(50): t += leaf(i) + leaf(i, 1, 2, 3) + leaf(i, b=5)
    return t
print({at_depth(d, loop) for d in range(0, 400, 7)})
def gl():
    def g(k):
        for i in range(k): yield leaf(i)
    return sum(g(20))
print({at_depth(d, gl) for d in range(0, 400, 11)})
class P:
    @property
    def p(self): return leaf(1)
    def __getattr__(self, n): return self.p
    def __init__(self): self.z = leaf(3)
def attrs():
    o = P()
    return o.p + o.other + o.z
print({at_depth(d, attrs) for d in range(0, 400, 13)})
def err(): raise ValueError("deep")
def caught(d):
    try: at_depth(d, err)
    except ValueError as e: return str(e)
print({caught(d) for d in range(0, 500, 17)})
exec("def wide(n):\n" + "".join(f"  x{i} = n\n" for i in range(3000)) + "  return 0 if n == 0 else x2999 + wide(n - 1)\n")
print(wide(30))
import threading
res = []
def t(): res.append(big(60))
ths = [threading.Thread(target=t) for _ in range(3)]; [x.start() for x in ths]; [x.join() for x in ths]; print(set(res))

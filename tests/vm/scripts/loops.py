"""Loops: range kinds, lists changing under iteration, break, continue, else, nesting."""
for r in (range(3), range(0), range(5, 0, -2), range(-3, 3), range(2**40, 2**40 + 3), range(2**70, 2**70 + 2), range(0, 10, 3)):
    out = []
    for i in r: out.append(i)
    else: out.append("else")
    print(out)
l = [1, 2, 3]
for x in l:
    if len(l) < 6: l.append(x * 10)
print(l)
it = iter(l)
for x in it:
    if x == 10: break
for x in it: print(x, end=" ")
print(list(it))
d = {1: 2}
try:
    for k in d: d[k + 1] = 0
except RuntimeError as e: print(e)
def search(n):
    for i in range(n):
        for j in range(i):
            if i * j == 6: return i, j
            if j == 4: continue
        else:
            continue
        break
    else: return "none"
print(search(3), search(10))
n = 0
while n < 5:
    n += 1
    if n == 2: continue
    if n == 4: break
else: print("not here")
print(n)
class It:
    def __init__(self, n): self.n = n
    def __iter__(self): return self
    def __next__(self):
        if self.n == 0: raise StopIteration
        self.n -= 1
        return self.n
class BadIter:
    def __iter__(self): return 5
class Raise:
    def __iter__(self): return self
    def __next__(self): raise KeyError("next")
class Seq:
    def __getitem__(self, i):
        if i > 2: raise IndexError
        return i
def run(o):
    r = []
    for x in o: r.append(x)
    return r
for o in [It(3), [1], (2, 3), range(2), "ab", {5: 6}, Seq(), BadIter(), Raise(), 7, (x for x in "gen"), It(1), {1, }, map(str, (1, 2)), zip("a", "b"), enumerate("c"), reversed([1, 2])] * 2:
    try: print(run(o))
    except Exception as e: print(type(e).__name__, e)
i = "kept"
for i in []: pass
print(i)
def many():
    s = 0
    for a, (b, c) in [(1, (2, 3)), (4, (5, 6))]: s += a + b + c
    for [a, *b] in ["abc", "de"]: s += len(b)
    return s
print(many())
def countdown(n):
    while n: n -= 1
    return n
print(countdown(100000))

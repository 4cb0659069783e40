"""yield from: values, exceptions, returns, iterators of all kinds."""
def inner():
    try:
        x = yield 1
        print("inner got", x)
        y = yield 2
        print("inner got", y)
    except ValueError as e:
        print("inner caught", e); yield "recovered"
    finally: print("inner finally")
    return "inner result"
def outer():
    r = yield from inner()
    print("r =", r)
    s = yield from [10, 20]
    print("s =", s)
    t = yield from "ab"
    return "outer result"
def drive(gen, sends):
    out = []
    try:
        out.append(next(gen))
        for s in sends: out.append(gen.throw(s) if isinstance(s, Exception) else gen.send(s))
    except StopIteration as e: out.append(("stop", e.value))
    except Exception as e: out.append((type(e).__name__, str(e)))
    return out
print(drive(outer(), ["a", "b"]))
print(drive(outer(), [ValueError("v"), None, None, None, None, None]))
print(drive(outer(), [KeyError("k")]))
print(drive(outer(), [None, None, 5]))
o = outer(); next(o); o.close()
def tree(n): 
    if n:
        yield from tree(n - 1); yield n; yield from tree(n - 1)
print(list(tree(4)), sum(1 for _ in tree(8)))
class It:
    def __iter__(self): return self
    def __init__(self): self.n = 0
    def __next__(self):
        self.n += 1
        if self.n > 2: raise StopIteration("it result")
        return self.n
    def send(self, v): return ("sent", v)
    def throw(self, *a): raise RuntimeError("thrown into It")
def d2(): return (yield from It())
print(drive(d2(), [None, None]), drive(d2(), ["x", ValueError("q")]))
def bad(): yield from 5
for i in range(3): print(drive(bad(), []))
def chain(n): 
    if n == 0: yield "bottom"; return 0
    return 1 + (yield from chain(n - 1))
def total(): print("depth", (yield from chain(50)))
print(list(total()))
def gyf():
    g = outer(); next(g); return g.gi_yieldfrom.__name__
print(gyf())

"""Reusing a dying float never changes one that is still seen."""
def f(a):
    b = a * 2.0
    c = b + 1.0
    d = [b, c, b + c]
    e = b
    b = b + 10.0
    return a, b, c, d, e
for i in range(8): r = f(1.5)
print(r)
class H:
    def __init__(self): self.v = 0.0; self.hist = []
    def step(self):
        self.v = self.v + 1.25
        self.hist.append(self.v)
        self.v += 0.5
        return self.v * 2.0
h = H(); out = [h.step() for _ in range(6)]; print(out, h.hist)
consts = [0.1, 0.2]
def g():
    x = 0.1 + 0.2
    y = x
    x = x - 0.05
    return x, y, 0.1, 0.2
for i in range(6): r = g()
print(r, consts)
acc = 0.0; seen = []
for i in range(6):
    acc = acc + i * 0.5
    seen.append(acc)
print(seen)
def ret(x): return x + 1.0
v = 2.0; w = [ret(v) * ret(v) for _ in range(4)]; print(v, w)

"""Instance attributes: inline values, dicts, slots, class values, deletion, changing classes."""
class P:
    k = "class"
    def __init__(self, a): self.a = a
    def m(self): return "m"
class S:
    __slots__ = ("a", "b")
    def __init__(self): self.a = 1
class D(P): pass
def geta(o): return o.a
objs = [P(1), P(2), D(3), S()]
for i in range(30):
    print(geta(objs[i % 4]), end=" ")
print()
p = P(1)
for i in range(10): p.a = i
p.__dict__["a"] = "via dict"; print(p.a)
p.__dict__ = {"a": "new dict"}; print(p.a); p.b = 2; print(p.__dict__)
del p.a
try: p.a
except AttributeError as e: print(e)
try: del p.a
except AttributeError as e: print(e)
s = S()
try: s.b
except AttributeError as e: print(e)
s.b = 5; print(s.b); del s.b
try: s.c = 1
except AttributeError as e: print(e)
def getk(o): return o.k, o.m()
q = P(1)
for i in range(20):
    if i == 10: q.k = "instance"
    if i == 14: P.k = "class2"; P.m = lambda self: "m2"
    if i == 16: del q.k
    if i == 18: q.m = lambda: "own m"
    print(getk(q), end=" ")
print()
many = P(0)
for i in range(50): setattr(many, "f%d" % i, i)
def f40(o): return o.f40
print([f40(many) for _ in range(5)])
class Big: pass
for i in range(40):
    b = Big(); setattr(b, "x%d" % i, i); b.common = i
    print(b.common, end=" ")
print()
q.__class__ = D; print(q.k, type(q).__name__)
class E:
    a = property(lambda self: "prop")
q2 = P(5); print(geta(q2)); q2.__class__ = E; print(geta(q2))

"""The same instruction sees changing operand types."""
class V:
    def __init__(self, v): self.v = v
    def __add__(self, o): return V(self.v + (o.v if isinstance(o, V) else o))
    def __radd__(self, o): return V(o + self.v)
    def __mul__(self, o): return NotImplemented
    def __rmul__(self, o): return "rmul %r" % (o,)
    def __sub__(self, o): return NotImplemented
    def __repr__(self): return "V(%r)" % self.v
    def __eq__(self, o): return isinstance(o, V) and o.v == self.v
    def __lt__(self, o): return NotImplemented if not isinstance(o, V) else self.v < o.v
    def __and__(self, o): return "and"
    def __matmul__(self, o): return "matmul"
    def __or__(self, o): raise ValueError("or")
class W(V):
    def __radd__(self, o): return "W.radd"
def add(a, b): return a + b
for a, b in [(1, 2), (1.0, 2.0), ("x", "y"), (V(1), 2), (2, V(1)), (V(1), V(2)), (V(1), W(2)), (W(1), V(2)), ([1], [2]), ((1,), (2,))] * 5:
    print(add(a, b), end=" ")
print()
for e in ("V(1) * 2", "2 * V(1)", "V(1) - V(2)", "V(1) - 2", "V(1) < 3", "V(1) > V(0)", "V(1) == V(1)", "V(1) != V(1)", "V(1) == 1", "V(1) & 1", "V(1) @ 1", "V(1) | 1", "V(1) * 'a'", "V(1) * [1]", "V(1) <= V(2)"):
    for i in range(4):
        try: print(e, eval(e))
        except Exception as x: print(e, type(x).__name__, x)
a = V(1)
for i in range(5):
    a += 1
print(a)

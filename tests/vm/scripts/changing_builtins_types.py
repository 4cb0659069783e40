"""Classes patched while their methods run; special methods added and removed on live types."""
class A:
    def f(self): return 1
a = A()
def probe():
    out = []
    for e in (lambda: len(a), lambda: bool(a), lambda: a + 1, lambda: a[0], lambda: a(), lambda: list(a), lambda: 1 in a, lambda: a.f(), lambda: a.g, lambda: a == 5, lambda: a < 5, lambda: -a):
        try: out.append(e())
        except Exception as x: out.append(type(x).__name__)
    return out
for i in range(4): r = probe()
print(r)
for name, fn in [("__len__", lambda s: 0), ("__bool__", lambda s: True), ("__add__", lambda s, o: "add"), ("__getitem__", lambda s, i: [7][i]), ("__call__", lambda s: "call"), ("__iter__", lambda s: iter("it")), ("__contains__", lambda s, k: True), ("f", lambda s: 2), ("__getattr__", lambda s, n: n), ("__eq__", lambda s, o: "eq"), ("__lt__", lambda s, o: "lt"), ("__neg__", lambda s: "neg")]:
    setattr(A, name, fn)
    for i in range(3): r = probe()
    print(name, r)
for name in ("__len__", "__bool__", "__add__", "__getitem__", "__call__", "__iter__", "__contains__", "__getattr__", "__eq__", "__lt__", "__neg__"):
    delattr(A, name)
    for i in range(3): r = probe()
    print(name, r)
class B:
    def f(self):
        B.f = lambda s: "replaced"
        return "original"
b = B(); print([b.f() for _ in range(4)])
class C:
    n = 0
    def __getattribute__(self, k):
        C.n += 1
        if C.n == 5: del C.__getattribute__
        return "custom " + k
c = C()
for i in range(7):
    try: print(c.zz, end=" ")
    except AttributeError as e: print(e, end=" ")
print()
class Base: pass
class Derived(Base): pass
d = Derived()
def val(): return getattr(d, "v", None), hasattr(d, "v") and d.v
for i in range(4): r = val()
Base.v = 1; print(r, val()); Derived.v = 2; print(val()); del Derived.v; print(val())
class Other: v = "other"
Derived.__bases__ = (Other,); print(val())

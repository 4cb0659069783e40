"""Class bodies: names, closures, annotations, __class__, metaclasses."""
x = "global"
class A:
    x = "class"
    y = x
    def f(self): return x
    l = [x for _ in range(1)]
    a: int = 3
    b: "str"
    del y
print(A().f(), A.l, A.__annotations__, hasattr(A, "y"))
def make(v):
    class B:
        w = x
        def get(self): return v, __class__.__name__
        u = "shadow"
    return B
def deref(v):
    class B2:
        nonlocal_read = [v]
        v = v if False else "own"
        after = v
    return B2
try: deref(1)
except NameError as e: print(e)
class Outer:
    def meth(self):
        y = "cell"
        class Inner:
            exec("y = 'from exec'")
            z = y
            def g(self): return y
        return Inner.z, Inner().g()
print(Outer().meth())
B = make(7)
print(B.w, B().get(), B.u)
class M(type):
    def __prepare__(name, bases, **kw):
        print("prepare", name, kw); return {"pre": 1}
    def __new__(m, name, bases, ns, **kw): return super().__new__(m, name, bases, dict(ns))
    def __init__(c, name, bases, ns, **kw): print("init", sorted(k for k in ns if not k.startswith("__")))
    def __call__(c, *a): print("call"); return super().__call__(*a)
class C(metaclass=M, flag=1):
    z = pre
c = C()
class D(C):
    def __init__(self, *a): print("D", a); super().__init__()
D(1, 2)
class Ns(dict):
    def __missing__(self, k): return "missing " + k
class M2(type):
    def __prepare__(n, b): return Ns()
    def __new__(m, n, b, ns): return type.__new__(m, n, b, {k: v for k, v in ns.items()})
class E(metaclass=M2):
    q = unknown
print(E.q)
def deco(f):
    print("deco", f.__name__); return f
@deco
@deco
def decorated(): pass
@deco
class Decorated: pass
exec("v: int = 3\nprint(__annotations__)", {})

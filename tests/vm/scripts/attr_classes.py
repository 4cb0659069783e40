"""Attributes of classes and metaclasses, super."""
class M(type):
    meta = "meta"
    @property
    def mp(cls): return "mp " + cls.__name__
    def mm(cls): return "mm " + cls.__name__
    def __getattr__(cls, n): return "M." + n
class A(metaclass=M):
    x = 1
    def f(self): return "A.f"
    @classmethod
    def c(cls): return "A.c " + cls.__name__
    @staticmethod
    def s(): return "A.s"
class B(A):
    def f(self): return "B>" + super().f()
    @classmethod
    def c(cls): return "B>" + super().c()
class C(B):
    x = 2
    def f(self): return "C>" + super().f() + super(B, self).f()
def go():
    return A.x, C.x, A.meta, A.mp, A.mm(), A.zzz, A.c(), B.c(), C.c(), A.s(), C().f(), B.f(B()), A.f
for i in range(5): r = go()
print(r[:-1], r[-1].__name__)
A.x = 5; print(go()[:2]); C.f = lambda self: "patched"; print(C().f())
try: super(B, A())
except TypeError as e: print(e)
class D(C):
    def g(self): return super().nothing
try: D().g()
except AttributeError as e: print(e)
try: A().nothing
except AttributeError as e: print(e)
print(type(A).__name__, A.__mro__[-1], C.__mro__[1].__name__, A.__name__, isinstance(C(), A), issubclass(C, B))
print(int.real, (5).real, "a".upper, (1).__add__(2), int.__add__(1, 2))
class Slots:
    __slots__ = ("a", "b")
    @property
    def p(self): return 1
    @classmethod
    def made(cls): return cls.__name__
    def __init__(self): object.__setattr__(self, "a", 3)
class Loud:
    def __get__(self, instance, owner): return ("asked by", instance is None, owner.__name__)
    def __set__(self, instance, value): pass
class Classes(Slots):
    loud, shown = Loud(), Slots.p
def on_classes():
    return (str.upper("a"), dict.__repr__({}), int.real.__name__, Slots.a.__get__(Slots()), Slots.p.fget(None), Classes.shown is Slots.p,
            Classes.loud, Classes.made(), dict.fromkeys("a"), Classes.__name__, Classes.__dict__["loud"] is Classes.loud, list.append.__name__)
for i in range(5): r = on_classes()
print(r)
Classes.p = 4; print(Classes.p, Slots.p is Classes.shown); del Classes.p; Classes.shown = str.lower; print(Classes.shown("X"))
for i in range(5): r = on_classes()
print(r[5], Classes.p is Slots.p)

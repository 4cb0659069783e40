"""Classes: construction, inheritance, dataclasses, enums, named tuples."""
import dataclasses, enum, collections, abc
class A:
    def __init__(self, x): self.x = x
class B(A):
    def __init__(self, x, y): super().__init__(x); self.y = y
class C(B):
    def __init__(self, *a, **k): super().__init__(*a, **k); self.z = "z"
def mk(): return C(1, 2), C(1, y=3), C(*(4, 5)), B(y=1, x=2)
for i in range(5): r = mk()
print([(o.x, o.y, getattr(o, "z", None)) for o in r])
@dataclasses.dataclass(order=True, frozen=True)
class D:
    a: int
    b: str = "b"
    c: list = dataclasses.field(default_factory=list)
print([D(i) for i in range(3)], D(1) < D(2), D(1) == D(1), dataclasses.replace(D(1), b="x"))
try: D(1).a = 2
except dataclasses.FrozenInstanceError as e: print(e)
class E(enum.Enum):
    X = 1; Y = 2
    def m(self): return self.name
print(E.X, E(2), E["X"].m(), [e.value for e in E], E.X is E.X)
N = collections.namedtuple("N", "a b"); print(N(1, 2), N(b=1, a=2).a, N(1, 2)._replace(a=5))
class Abs(abc.ABC):
    @abc.abstractmethod
    def f(self): ...
    def __init__(self): self.q = 1
class Conc(Abs):
    def f(self): return "f"
for i in range(4):
    try: Abs()
    except TypeError as e: print(e)
    print(Conc().f(), Conc().q)
class S(str):
    def __init__(self, v): self.extra = v
class T(tuple):
    def __new__(cls, *a): return super().__new__(cls, a)
    def __init__(self, *a): self.n = len(a)
for i in range(4): print(S("abc"), S("abc").extra, T(1, 2), T(1, 2).n)
class Ret:
    def __init__(self): return None
    def __del__(self): log.append("del")
log = []
for i in range(3): Ret()
print(log)
class Raises:
    def __init__(self): raise ValueError("init")
for i in range(3):
    try: Raises()
    except ValueError as e: print(e)

"""Properties, descriptors, __getattr__, __getattribute__, in LOAD_ATTR and LOAD_METHOD."""
class Desc:
    def __get__(self, o, t): return ("get", o is None, t.__name__)
class Data(Desc):
    def __set__(self, o, v): print("set", v)
    def __delete__(self, o): print("delete")
class A:
    d = Desc(); data = Data()
    @property
    def p(self): return self._p
    @p.setter
    def p(self, v): self._p = v
    @property
    def bad(self): raise AttributeError("inside")
    @property
    def worse(self): raise KeyError("inside")
    @property
    def fn(self): return lambda *a: ("fn", a)
    @staticmethod
    def s(*a): return a
    @classmethod
    def c(cls, *a): return cls.__name__, a
class G(A):
    def __getattr__(self, n):
        if n.startswith("no"): raise AttributeError("G has no " + n)
        return lambda *a: (n, a)
class H:
    def __init__(self): object.__setattr__(self, "log", [])
    def __getattribute__(self, n):
        if n == "missing": raise AttributeError("H " + n)
        if n == "boom": raise ZeroDivisionError(n)
        return object.__getattribute__(self, n)
    def __setattr__(self, n, v):
        object.__getattribute__(self, "log").append((n, v)); object.__setattr__(self, n, v)
    def __getattr__(self, n): return "fallback " + n
import sys
def show(f):
    for i in range(5):
        try: r = f()
        # From 3.12 on, CPython's specialised forms leave the name out.
        except Exception as e: r = (type(e).__name__, str(e), getattr(e, "name", None) if sys.version_info < (3, 12) else "?")
        if i in (0, 4): print(r)
for o in (A(), G()):
    show(lambda: o.p)
    o.p = 3
    show(lambda: o.p); show(lambda: o.d); show(lambda: o.data); o.data = 1; del o.data
    show(lambda: o.bad); show(lambda: o.worse); show(lambda: o.fn(1)); show(lambda: o.fn); show(lambda: o.s(1)); show(lambda: o.c(2))
    show(lambda: o.nothing); show(lambda: o.nothing(1)); show(lambda: o.dyn(1) if isinstance(o, G) else None); show(lambda: o.bad())
    o.__dict__["d"] = "own d"; o.__dict__["data"] = "own data"
    show(lambda: o.d); show(lambda: o.data)
h = H(); h.x = 1; h.y = 2
show(lambda: h.x); show(lambda: h.missing); show(lambda: h.boom); show(lambda: h.log); show(lambda: h.log.append(0)); show(lambda: h.nothing)
print(len(h.log), A.d, A.p.fget.__name__, A.s(1), A.c())
try: A().p = 1; A.p = 5; print(A().p)
except AttributeError as e: print(e)
class R:
    @property
    def r(self): return 1
show(lambda: setattr(R(), "r", 2))
print(hasattr(A(), "bad"), hasattr(G(), "bad"), getattr(G(), "no", 9))

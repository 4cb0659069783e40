"""functools, operator slots and special methods found on types only."""
class A:
    def __len__(self): return 3
    def __index__(self): return 2
    def __int__(self): return 7
    def __float__(self): return 2.5
    def __str__(self): return "str A"
    def __repr__(self): return "repr A"
    def __hash__(self): return 11
    def __neg__(self): return "neg"
    def __pos__(self): return "pos"
    def __invert__(self): return "inv"
    def __abs__(self): return "abs"
    def __round__(self, n=None): return ("round", n)
    def __divmod__(self, o): return "divmod"
    def __pow__(self, o, m=None): return ("pow", o, m)
    def __ipow__(self, o): return "ipow"
    def __iadd__(self, o): return ("iadd", o)
    def __lshift__(self, o): return "lshift"
    def __rshift__(self, o): return "rshift"
    def __floordiv__(self, o): return "floordiv"
    def __mod__(self, o): return "mod"
    def __xor__(self, o): return "xor"
    def __or__(self, o): return "or"
    def __truediv__(self, o): return "truediv"
    def __imatmul__(self, o): return "imatmul"
    def __reversed__(self): return iter("rev")
    def __dir__(self): return ["d"]
    def __format__(self, s): return "fmt" + s
    def __bytes__(self): return b"by"
    def __complex__(self): return 1j
    def __delattr__(self, n): print("delattr", n)
    def __missing__(self, k): return "miss"
    def __sizeof__(self): return 1
a = A()
def ops():
    b = a; b += 1
    c = a; c **= 2
    d = a; d @= 3
    return len(a), [10, 20, 30][a], int(a), float(a), str(a), repr(a), hash(a), -a, +a, ~a, abs(a), round(a), divmod(a, 1), a ** 2, pow(a, 2, 3), b, c, d, a << 1, a >> 1, a // 1, a % 1, a ^ 1, a | 1, a / 1, list(reversed(a)), dir(a), f"{a:x}", bytes(a), complex(a)
for i in range(4): r = ops()
print(r); del a.foo
a.__len__ = lambda: 99; print(len(a))
class S:
    def __set_name__(self, o, n): print("set_name", o.__name__, n)
    def __init_subclass__(cls, **k): print("init_subclass", cls.__name__, k)
class T(S, flag=2):
    x = S()
class NoOps: pass
n = NoOps()
for e in ("n + 1", "1 + n", "-n", "n[0]", "n()", "len(n)", "n < 1", "iter(n)", "n @ 2", "n ** 2", "abs(n)", "int(n)", "for_(n)", "with_(n)", "n.x", "n << 1", "~n", "[1][n]", "n in n", "float(n)"):
    def for_(o):
        for _ in o: pass
    def with_(o):
        with o: pass
    for i in range(3):
        try: r = eval(e)
        except Exception as x: r = type(x).__name__, str(x)
    print(e, r)

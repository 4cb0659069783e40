"""Order of finalizers relative to other effects."""
class D:
    def __init__(self, n): self.n = n
    def __del__(self): print("del", self.n)
def f():
    a = D("a"); b = D("b")
    print("body")
    a = D("a2")
    print("rebound")
    return "ret"
print(f())
def g(x): print("in g"); x = None; print("x gone"); return 1
print(g(D("arg")), "after g")
def h(*a, **k): del a; print("args gone"); return 2
print(h(D("s"), k=D("k")))
print([D("list").n, "x"][0])
for i in (1, 2): t = D(f"loop{i}")
del t
print(D("tmp").n + "!")
def gen():
    d = D("gen"); yield 1; yield 2
for x in gen(): break
print("loop left")
x = gen(); next(x); x.close(); print("closed")
try:
    d = D("in try"); raise ValueError
except ValueError: d = None; print("handled")
def raises(): d = D("frame"); raise KeyError
try: raises()
except KeyError: print("caught")
print("after")
class C:
    @property
    def p(self): return D("prop").n
    def __getattr__(self, n): return D("ga " + n).n
    def __add__(self, o): print("adding"); return 1
c = C(); print(c.p, c.q, C() + D("operand"))
lst = [D("l0"), D("l1")]; lst[0] = 5; lst.clear(); print("cleared")
dct = {"k": D("d")}; dct["k"] = 1; print("dict set")
with_d = D("global at exit")

"""with: order, suppression, exceptions in enter and exit, return and break inside."""
log = []
class C:
    def __init__(self, n, swallow=False, fail=None): self.n, self.s, self.f = n, swallow, fail
    def __enter__(self):
        log.append(("enter", self.n))
        if self.f == "enter": raise OSError("enter")
        return self
    def __exit__(self, t, v, tb):
        log.append(("exit", self.n, t and t.__name__, str(v), tb is not None))
        if self.f == "exit": raise OSError("exit")
        return self.s
def run(*cs, body=None):
    with cs[0] as a:
        if len(cs) > 1:
            with cs[1]: return body() if body else "plain"
        return body() if body else "plain"
    return "swallowed"
def boom(): raise ValueError("boom")
for cs, body in [((C(1),), None), ((C(1), C(2)), None), ((C(1, True),), boom), ((C(1), C(2, True)), boom), ((C(1),), boom), ((C(1, fail="enter"),), None), ((C(1, fail="exit"),), None), ((C(1, fail="exit"),), boom), ((C(1, True), C(2, fail="exit")), boom)]:
    for i in range(3):
        log.clear()
        try: r = run(*cs, body=body)
        except Exception as e: r = (type(e).__name__, str(e), repr(e.__context__))
    print(r, log)
def loop():
    for i in range(4):
        with C(i):
            if i == 1: continue
            if i == 2: break
    return i
log.clear(); print(loop(), len(log))
for bad in (5, type("NoExit", (), {"__enter__": lambda s: 1})()):
    for i in range(2):
        try:
            with bad: pass
        except TypeError as e: print(e)
import contextlib
@contextlib.contextmanager
def cm(x):
    log.append("before")
    try: yield x
    except ValueError as e: log.append(("cm", str(e)))
    finally: log.append("after")
for i in range(3):
    log.clear()
    with cm(5) as v: log.append(v)
    with cm(6): raise ValueError("in cm")
print(log)
try:
    with cm(7): raise KeyError("through")
except KeyError as e: print(e)
with contextlib.ExitStack() as st:
    for i in range(3): st.enter_context(C(i))
with contextlib.suppress(KeyError): {}[1]
class Inst:
    pass
i = Inst(); i.__enter__ = lambda: 1; i.__exit__ = lambda *a: None
try:
    with i: pass
except TypeError as e: print(e)
with C("a") as a, C("b") as b: print(a.n, b.n)
with (C("x"), C("y") as y): print(y.n)

"""sys._getframe, f_locals, f_back, lines, frame objects that outlive their frames, locals()."""
import sys, inspect, gc, traceback
def names():
    f = sys._getframe(); out = []
    while f: out.append((f.f_code.co_name, f.f_lineno)); f = f.f_back
    return out
def a(x): return b(x=x)
def b(**k): return c(*k.values())
def c(v):
    return D().go(v)
class D:
    def go(self, v): return self.prop
    @property
    def prop(self): return names()
for i in range(3): r = a(1)
print(r)
def keep():
    x = 5
    f = sys._getframe()
    x = 6
    return f
f = keep(); print(f.f_locals, f.f_lineno, f.f_code.co_name, f.f_back)
def gen():
    y = 1
    yield sys._getframe()
    y = 2
    yield sys._getframe()
g = gen(); fr = next(g); print(fr.f_locals, fr.f_back); next(g); print(fr.f_locals)
for fr in gen(): print(fr.f_locals, fr.f_back, fr.f_lineno)
def exc():
    loc = "local"
    1 / 0
try: exc()
except ZeroDivisionError as e:
    tb = e.__traceback__
    print(tb.tb_next.tb_frame.f_locals, tb.tb_next.tb_lineno, tb.tb_lineno)
def loc():
    q = 1
    l = locals(); r = 2
    return l is locals(), sorted(locals())
print(loc())
print(inspect.stack()[0].function, inspect.currentframe().f_lineno)
def clear():
    try: exc()
    except ZeroDivisionError as e: t = e.__traceback__.tb_next.tb_frame; 
    t.clear(); return t.f_locals
print(clear())
try: sys._getframe().clear()
except RuntimeError as e: print(e)
class Dtor:
    def __del__(self): print("del at", sys._getframe(1).f_code.co_name, sys._getframe(1).f_lineno)
def drop():
    d = Dtor()
    d = None
    e = Dtor()
    Dtor()
    del e
    l = [Dtor()]
    l[0] = 1
drop()
def callers():
    return [sys._getframe(i).f_code.co_name for i in range(3)]
print([callers() for _ in range(1)], list(map(lambda _: callers(), [1])), max([1], key=lambda _: len(callers())))
def setlocal():
    z = 1
    exec("z = 2")
    sys._getframe().f_locals["z"] = 3
    return z
print(setlocal())
import warnings
def warn(): warnings.warn("w", stacklevel=2)
with warnings.catch_warnings(record=True) as ws:
    warnings.simplefilter("always")
    warn()
    print(ws[0].lineno)

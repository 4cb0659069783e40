"""sys.settrace and sys.setprofile switched on and off in the middle of running frames."""
import sys
events = []
def tracer(frame, event, arg):
    events.append((event, frame.f_code.co_name, frame.f_lineno, arg if not isinstance(arg, tuple) else arg[0].__name__))
    return tracer
def leaf(x):
    y = x + 1
    return y
def gen():
    yield 1
    yield 2
def raises():
    raise ValueError("t")
def work():
    for i in range(2):
        leaf(i)
    for v in gen(): pass
    try: raises()
    except ValueError: pass
    class A:
        def __init__(self): self.a = 1
        @property
        def p(self): return self.a
    A().p
def on_inside():
    leaf(0)
    sys.settrace(tracer)
    leaf(1)
    sys.settrace(None)
    leaf(2)
for f in (work,):
    sys.settrace(tracer); f(); sys.settrace(None)
for e in events: print(e)
events.clear(); on_inside()
for e in events: print(e)
def enable_local():
    sys._getframe(1).f_trace = tracer
    sys.settrace(tracer)
def caller():
    a = 1
    enable_local()
    b = 2
    leaf(b)
    return a + b
events.clear(); caller(); sys.settrace(None)
for e in events: print(e)
prof = []
def profiler(frame, event, arg): prof.append((event, frame.f_code.co_name, getattr(arg, "__name__", None)))
def profiled():
    len([1]); leaf(1); [].append(1); abs(-1)
    try: int("x")
    except ValueError: pass
    list(gen())
sys.setprofile(profiler); profiled(); sys.setprofile(None)
for p in prof: print(p)
prof.clear()
def mid():
    sys.setprofile(profiler)
    leaf(1); len("a")
    sys.setprofile(None)
mid()
for p in prof: print(p)
def genmid():
    yield 1
    sys.settrace(tracer)
    yield 2
    sys.settrace(None)
    yield 3
events.clear()
for x in genmid(): leaf(x)
sys.settrace(None)
for e in events: print(e)
def deep(n):
    if n == 0:
        sys.settrace(tracer); sys._getframe(1).f_trace = tracer; sys._getframe(2).f_trace = tracer
        return 0
    r = deep(n - 1)
    return r + 1
events.clear(); print(deep(4)); sys.settrace(None)
for e in events: print(e)

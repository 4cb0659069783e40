"""Arguments die when the called function drops them, also where tracing has begun, or goes on in another thread."""
import sys, threading
class D:
    def __init__(self, n): self.n = n
    def __del__(self): print("del", self.n)
    def method(self):
        self = None
        print("self dropped")
def tracer(frame, event, arg): return tracer
def profiler(frame, event, arg): pass
def one(x):
    x = None
    print("x dropped")
def collect(*a, **k):
    a = k = None
    print("all dropped")
def gen(x):
    x = None
    print("x of a generator dropped")
    yield 1
def unpack(x, y):
    x, y = y, 1
    print("x replaced")
def raises(x):
    x = None
    raise KeyError("after the drop")
def calls(n):
    one(D(n))
    one(x=D(n + 1))
    collect(D(n + 2), k=D(n + 3))
    D(n + 4).method()
    bound = D(n + 5).method
    bound()
    del bound
    unpack(D(n + 6), D(n + 7))
    list(gen(D(n + 8)))
    try: raises(D(n + 9))
    except KeyError as error: print(error)
def settrace_here():
    for i in range(6):
        print("settrace, round", i)
        if i == 2: sys.settrace(tracer)
        one(D(100 + i))
        D(110 + i).method()
        calls(10 * i)
    sys.settrace(None)
def setprofile_here():
    for i in range(3):
        print("setprofile, round", i)
        if i == 1: sys.setprofile(profiler)
        one(D(200 + i))
        calls(10 * i)
    sys.setprofile(None)
def begin(): sys.settrace(tracer)
def end(): sys.settrace(None)
def generator_traced():
    begin()
    one(D("in a traced generator"))
    yield 1
    one(D("in a resumed generator"))
    yield 2
    end()
def consume():
    for value in generator_traced(): one(D(value))
def through_c():
    begin()
    print(sorted([3, 1], key=lambda n: one(D(n)) or n), list(map(gen, [D("mapped")])) != [])
    end()
def nested():
    begin()
    def inner():
        end()
        begin()
    inner()
    one(D("outer"))
    end()
for _ in range(3): calls(0)
settrace_here()
print("returned"); calls(300)
setprofile_here()
print("returned"); calls(400)
consume()
through_c()
nested()
print("returned"); calls(500)
running, ready, go_on = threading.Event(), threading.Event(), threading.Event()
def traced_thread():
    running.wait()
    begin()
    one(D("traced thread"))
    ready.set()
    go_on.wait()
    one(D("traced thread goes on"))
def other_thread():
    running.set()
    ready.wait()
    one(D("beside a traced thread"))
    calls(600)
thread = threading.Thread(target=traced_thread)
thread.start()
other_thread()
again = threading.Thread(target=other_thread)
again.start(); again.join()
go_on.set(); thread.join()
calls(700)
if hasattr(sys, "monitoring"):
    m = sys.monitoring
    m.use_tool_id(3, "test")
    m.register_callback(3, m.events.PY_START, lambda code, offset: None)
    def monitored(n):
        one(D(n))
        calls(800)
    m.set_local_events(3, monitored.__code__, m.events.PY_START)
    monitored("local events")
    m.set_local_events(3, monitored.__code__, 0)
    monitored("no events")
    m.free_tool_id(3)
calls(900)

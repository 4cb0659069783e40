"""Threads, pending signals, asynchronous exceptions, Ctrl-C in loops."""
import threading, time, signal, os, sys, _thread, ctypes
count = [0]
lock = threading.Lock()
def work():
    for i in range(2000):
        with lock: count[0] += 1
ts = [threading.Thread(target=work) for _ in range(4)]
[t.start() for t in ts]; [t.join() for t in ts]; print(count)
hits = []
signal.signal(signal.SIGALRM, lambda s, f: hits.append(f.f_code.co_name))
signal.setitimer(signal.ITIMER_REAL, 0.02)
def spin():
    while not hits: pass
    return hits
print(spin())
def rec(n): return 0 if n == 0 else 1 + rec(n - 1)
hits.clear(); signal.setitimer(signal.ITIMER_REAL, 0.02)
while not hits: rec(50)
print(len(hits))
class Stop(Exception): pass
def handler(s, f): raise Stop("from handler")
signal.signal(signal.SIGALRM, handler)
try:
    signal.setitimer(signal.ITIMER_REAL, 0.02)
    while True: pass
except Stop as e: print("stopped", e)
try:
    signal.setitimer(signal.ITIMER_REAL, 0.02)
    for i in iter(int, 1): pass
except Stop as e: print("stopped", e)
def g():
    while True: yield 1
try:
    signal.setitimer(signal.ITIMER_REAL, 0.02)
    for i in g(): pass
except Stop as e: print("stopped", e)
done = []
def victim():
    try:
        while True: time.sleep(0.001)
    except KeyError: done.append("async exc")
t = threading.Thread(target=victim); t.start(); time.sleep(0.02)
ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(t.ident), ctypes.py_object(KeyError)); t.join(); print(done)
try:
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell starts background programs with Ctrl-C ignored
    threading.Timer(0.02, _thread.interrupt_main).start()
    while True: pass
except KeyboardInterrupt: print("interrupted")
tl = threading.local()
def useloc(n): tl.v = n; time.sleep(0.001); out.append(tl.v == n)
out = []; ts = [threading.Thread(target=useloc, args=(i,)) for i in range(5)]; [t.start() for t in ts]; [t.join() for t in ts]; print(out)
x = []
def tgen():
    for i in range(1000): yield i
def consume(): x.append(sum(tgen()))
ts = [threading.Thread(target=consume) for _ in range(4)]; [t.start() for t in ts]; [t.join() for t in ts]; print(x)
def fails(): raise ValueError("in thread")
threading.excepthook = lambda a: print("hook", a.exc_type.__name__, a.exc_value)
t = threading.Thread(target=fails); t.start(); t.join()

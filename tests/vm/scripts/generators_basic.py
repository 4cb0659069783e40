"""Generators: iteration, send, throw, close, return values, state."""
import inspect
def g(n):
    try:
        for i in range(n):
            r = yield i
            if r: print("got", r)
    except ValueError as e: print("caught", e); yield "after throw"
    finally: print("finally")
    return "done"
print(list(g(3)))
x = g(3); print(next(x), x.send("a"), x.throw(ValueError("v")))
try: next(x)
except StopIteration as e: print("stop", e.value)
try: next(x)
except StopIteration as e: print("stop again", e.value)
y = g(5); next(y); print(inspect.getgeneratorstate(y)); y.close(); print(inspect.getgeneratorstate(y))
z = g(2)
try: z.send(1)
except TypeError as e: print(e)
del z
def selfish():
    try: next(me)
    except ValueError as e: print(e)
    for q in loop(): print(q)
    yield 1
def loop():
    try:
        for v in me: yield v
    except ValueError as e: yield str(e)
me = selfish(); print(list(me))
def stop():
    yield 1
    raise StopIteration("inner")
for how in (list, lambda s: [q for q in s], lambda s: run(s)):
    def run(s):
        out = []
        for q in s: out.append(q)
        return out
    try: print(how(stop()))
    except RuntimeError as e: print(e, repr(e.__cause__))
def early():
    for q in g(10):
        if q == 2: return q
print(early())
def ret():
    return 5
    yield
for i in range(3):
    for _ in ret(): print("no")
print(list(ret()), [i for i in (j for j in range(3))])
def partial():
    it = g(4)
    for q in it:
        if q == 1: break
    for q in it: print("rest", q)
partial()
def fibs():
    a, b = 0, 1
    while True: yield a; a, b = b, a + b
for i, f in zip(range(10), fibs()): print(f, end=" ")
print()
gi = (i for i in range(2)); print(gi.gi_frame is not None, gi.gi_running, gi.gi_code.co_name, list(gi), gi.gi_frame)
print(any(i > 2 for i in range(5)), all(i < 3 for i in range(5)), sum(i for i in range(100)), max((i % 7 for i in range(20)), default=0), dict((k, 1) for k in "ab"), tuple(i for i in "xy"), set(i for i in "z"))

"""Members and getsets of C types that cannot be stored."""
r = range(5)
def read(o): return o.start, o.stop
def write(o, v): o.start = v
for i in range(5): read(r)
for i in range(5):
    try: write(r, i)
    except AttributeError as e: print(e)
s = slice(1, 2)
for i in range(5):
    try: s.start = 5
    except AttributeError as e: m = str(e)
print(m, s.start, (5).numerator, (1 + 2j).real, "a".__class__, type(1).__name__, int.__doc__[:6])
def f(): pass
for i in range(4): f.attr = i; f.__name__ = "g%d" % i
print(f.attr, f.__name__, f.__dict__)
for o, n, v in ((f, "__closure__", 1), (f, "__code__", 5), (1, "x", 1), ([], "append", 1), (object(), "y", 2), (f, "__defaults__", 5)):
    for i in range(3):
        try: setattr(o, n, v); r = "stored"
        except (AttributeError, TypeError) as e: r = str(e)
    print(n, r)

"""Locals, unbound names, del, globals, nonlocal."""
def unbound():
    try: print(x)
    except UnboundLocalError as e: print(e)
    x = 1
    del x
    try: print(x)
    except UnboundLocalError as e: print(e)
    try: del x
    except UnboundLocalError as e: print(e)
unbound()
def pair(a):
    if a: b = 1
    return a, b
for v in (1, 1, 1, 0):
    try: print(pair(v))
    except UnboundLocalError as e: print(e)
try: undefined_name
except NameError as e: print(e, e.name)
def g():
    global newglobal
    newglobal = 5
    del newglobal
    try: newglobal
    except NameError as e: print(e)
    try: del newglobal
    except NameError as e: print(e)
g()
def outer():
    n = 0
    def inc():
        nonlocal n
        n += 1
        return n
    def get(): return n
    def kill():
        nonlocal n
        del n
    inc(); inc()
    print(get())
    kill()
    try: get()
    except NameError as e: print(e)
    try: kill()
    except NameError as e: print(e)
    return locals().keys()
print(sorted(outer()))
def args(a, b=2, *c, d, e=5, **f):
    z = 1
    return sorted(locals().items(), key=str)
print(args(1, d=4), args(1, 2, 3, d=4, q=9))
print([locals() is not None for i in range(2)], [x for x in range(3) for y in range(x)], {k: v for k, v in zip("ab", (1, 2))}, {i % 2 for i in range(5)})
